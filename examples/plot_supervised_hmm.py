"""
Supervised HMM: filtering and smoothing of states
=================================================

A machine is warming up, running, or worn. Its state is hidden, but sensors measure
vibration, noise and temperature. For some past shifts the states are labelled. That is
enough for a hidden Markov model, by counting alone. And since it also models the
sensors, it can estimate the state *while the shift is still going on*.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import DiscriminativeHMM

# %%
# Past shifts. Each sensor reports a level from 0 to 5. A heavy load makes the machine
# shake, hum and heat up all at once, whatever state it is in, so that the three sensors
# are highly correlated.

STATES = ["running", "warming up", "worn"]
MOVES = np.array([[0.97, 0.0, 0.03], [0.15, 0.85, 0.0], [0.05, 0.0, 0.95]])
LEVELS = np.array([[2.2, 2.0, 2.6], [1.6, 2.4, 0.8], [2.9, 2.9, 2.8]])


def shift(rng, length):
    state, load, states, rows = 1, 0.0, [], []
    for _ in range(length):
        load = 0.6 * load + rng.normal(scale=0.7)
        rows.append(LEVELS[state] + load + rng.normal(scale=0.5, size=3))
        states.append(STATES[state])
        state = rng.choice(3, p=MOVES[state])
    return np.clip(np.round(rows), 0, 5).astype(int), states


rng = np.random.default_rng(0)
train = [shift(rng, rng.integers(60, 120)) for _ in range(40)]
test = [shift(rng, rng.integers(60, 120)) for _ in range(200)]
X_train, y_train = zip(*train, strict=True)
X_test, y_test = zip(*test, strict=True)

# %%
# Counting first: ``eta=0``. Each column of an array is one stream of symbols.

counted = DiscriminativeHMM(eta=0.0).fit(X_train, y_train)
print("classes_", counted.classes_)
print(counted.transmat_.round(3))
print(f"right, counted: {counted.score(X_test, y_test):.3f}")

# %%
# The model assumes that sensors are independent given the state. They are not, so it
# counts the same evidence three times. Discriminative training compensates for some of
# it. ``dual_gap_`` bounds the distance from the optimum.

trained = DiscriminativeHMM(eta=0.01).fit(X_train, y_train)
print(f"right, trained: {trained.score(X_test, y_test):.3f}")
print(f"objective {trained.objective_:.2f}, at most {trained.dual_gap_:.2f} too high")

# %%
# Two queries on one shift. The filter uses only the observations so far, as a warning
# light would. Smoothing uses the whole shift, so the same model is more certain.

model, one = trained, 3
worn = list(model.classes_).index("worn")
live = model.filter([X_test[one]])[0][:, worn]
hindsight = model.predict_proba([X_test[one]])[0][:, worn]

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(9, 4.6), sharex=True, layout="constrained"
)
top.step(np.arange(len(live)), X_test[one], where="mid")
top.set(ylabel="level", ylim=(-0.3, 5.5), title="what the sensors say")
top.legend(["shaking", "noise", "heat"], loc="upper left", ncols=3, fontsize=8)
truth = np.array(y_test[one]) == "worn"
bottom.fill_between(
    np.arange(len(live)), truth, step="mid", alpha=0.2, label="worn in truth"
)
bottom.plot(live, label="so far (filter)")
bottom.plot(hindsight, label="in hindsight (predict_proba)")
bottom.set(xlabel="minute", ylabel="P(worn)", ylim=(-0.03, 1.03))
bottom.legend(loc="upper left", fontsize=8)
plt.show()

# %%
# One reading at a time, as in production:

state = model.start_filter()
for reading in X_test[one][:3]:
    p = state.step(tuple(reading.tolist()))
    print(tuple(reading.tolist()), model.classes_[p.argmax()], p.max().round(2))
