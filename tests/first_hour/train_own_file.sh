# Train on a file of your own, and evaluate the model on another one.
dualfield train train.conll --model own.model --dev dev.conll --constraints BIO
dualfield evaluate --model own.model test.conll > scores.txt
# Checks
test -s own.model
grep -q "processed .* tokens with .* phrases" scores.txt
grep -q "log-loss" scores.txt
