// Dual points of chains at temperatures above zero.
//
// mu_i is kept as the marginals of a chain with scores theta_i: one row for each node and one table of cliques for the
// whole example, since all edges share their scores. A step mixes theta_i with the scores that the weights give now,
//
//   theta_i <- (1 - eta) theta_i + eta (A_i w + D_i) / T,
//
// and computes marginals and entropy, H = log Z - <theta, mu>, by one forward-backward pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "dualfield/core/memory.hpp"
#include "dualfield/objectives/chain_model.hpp"
#include "dualfield/structures/chain_block.hpp"
#include "dualfield/vector/routines.hpp"

namespace dualfield {

// S: float or double, the precision in which the state is kept.
template <class S>
class SoftChains {
  public:
    SoftChains(const ChainModel& model, const ChainData& data, const ChainTruth& truth)
        : data_(data),
          truth_(truth),
          block_(*model.topology, model.start_limits, model.stop_limits),
          n_labels_(model.topology->n_labels()),
          n_cliques_(model.topology->n_cliques()),
          state_(routines().state<S>()),
          theta_(checked_product(data.n_nodes(), n_labels_)),
          mu_(checked_product(data.n_nodes(), n_labels_)),
          clique_theta_(checked_product(data.n_examples(), n_cliques_)),
          clique_mu_(checked_product(data.n_examples(), n_cliques_)),
          value_(data.n_examples(), 0.0),
          eta_(data.n_examples(), 1.0) {
        std::size_t longest = 0;
        for (std::size_t i = 0; i < data.n_examples(); ++i) longest = std::max(longest, data.length(i));
        for (Buffer* buffer : {&new_theta_, &new_mu_, &moved_})
            buffer->require(checked_product(longest, n_labels_) + kLanes);
        for (Buffer* buffer : {&new_clique_theta_, &new_clique_mu_, &clique_moved_}) buffer->require(n_cliques_);
    }

    // mu is the truth itself, where w and the dual are zero. No finite theta gives it, so theta only stands near by,
    // for the case that the first step, which would not look at it, is too long.
    void begin_at_truth() {
        for (Aligned<S>* numbers : {&theta_, &mu_, &clique_theta_, &clique_mu_})
            std::fill(numbers->begin(), numbers->end(), S{0});
        std::fill(value_.begin(), value_.end(), 0.0);
        for (std::size_t row = 0; row < data_.n_nodes(); ++row) {
            const std::size_t at = row * n_labels_ + static_cast<std::size_t>(data_.labels[row]);
            theta_[at] = static_cast<S>(kSure);
            mu_[at] = S{1};
        }
        for (std::size_t i = 0; i < data_.n_examples(); ++i)
            if (data_.length(i) > 0) truth_.add(i, S{1}, clique_mu_of(i));
    }

    // The point that belongs to given scores, whatever was there before.
    void begin_at(std::size_t i, const double* scores, const double* cliques) {
        const std::size_t size = data_.length(i) * n_labels_;
        // The old state has no share; it must be numbers all the same.
        std::fill_n(theta_of(i), size, S{0});
        std::fill_n(mu_of(i), size, S{0});
        std::fill_n(clique_theta_of(i), n_cliques_, S{0});
        std::fill_n(clique_mu_of(i), n_cliques_, S{0});
        const double value = propose(i, scores, cliques, 1.0);
        accept(i, value);
    }

    // Begins where a state in another precision stands.
    template <class Other>
    void take_over(const SoftChains<Other>& before) {
        std::copy(before.theta_.begin(), before.theta_.end(), theta_.begin());
        std::copy(before.clique_theta_.begin(), before.clique_theta_.end(), clique_theta_.begin());
        eta_ = before.eta_;
    }

    // The point that a step of length eta leads to; how far it is, is in moved() and clique_moved(). Returns its value,
    // T H + <D, mu>. scores [length][K] have the cost of wrong labels in them.
    double propose(std::size_t i, const double* scores, const double* cliques, double eta) {
        const std::size_t size = data_.length(i) * n_labels_;
        const double factor = 1.0 / data_.temperature;
        state_.mix(theta_of(i), scores, eta, factor, size, new_theta_.data());
        state_.mix(clique_theta_of(i), cliques, eta, factor, n_cliques_, new_clique_theta_.data());
        const auto answer = ask(new_theta_.data(), i, new_clique_theta_.data(), new_mu_.data(), new_clique_mu_.data());
        const double inner = state_.difference(new_mu_.data(), mu_of(i), new_theta_.data(), size, moved_.data()) +
                             state_.difference(new_clique_mu_.data(), clique_mu_of(i), new_clique_theta_.data(),
                                               n_cliques_, clique_moved_.data());
        return data_.temperature * (answer.log_partition - inner) + expected_cost(i, new_mu_.data());
    }
    void accept(std::size_t i, double value) {
        const std::size_t size = data_.length(i) * n_labels_;
        state_.keep(new_theta_.data(), size, theta_of(i));
        state_.keep(new_mu_.data(), size, mu_of(i));
        state_.keep(new_clique_theta_.data(), n_cliques_, clique_theta_of(i));
        state_.keep(new_clique_mu_.data(), n_cliques_, clique_mu_of(i));
        value_[i] = value;
    }

    // Marginals and value from theta, in double precision; leaves mu - u in moved() and clique_moved().
    void settle(std::size_t i) {
        value_[i] = exact_value(i);
        state_.keep(moved_.data(), data_.length(i) * n_labels_, mu_of(i));
        state_.keep(clique_moved_.data(), n_cliques_, clique_mu_of(i));
        subtract_truth(i);
    }
    // The value alone, or a little less: it is a difference of sums, and rounding must not make it a bound that is
    // none. Leaves mu in moved() and clique_moved(), and the state as it is.
    double exact_value(std::size_t i) {
        const std::size_t size = data_.length(i) * n_labels_;
        double *d = moved_.data(), *clique_d = clique_moved_.data();
        std::copy_n(theta_of(i), size, new_theta_.data());
        std::copy_n(clique_theta_of(i), n_cliques_, new_clique_theta_.data());
        const auto answer = ask(new_theta_.data(), i, new_clique_theta_.data(), d, clique_d);
        double inner = 0.0, magnitude = std::abs(answer.log_partition);
        const auto add = [&](double theta, double mu) {
            inner += theta * mu;
            magnitude += std::abs(theta) * mu;
        };
        for (std::size_t j = 0; j < size; ++j) add(new_theta_.data()[j], d[j]);
        for (std::size_t c = 0; c < n_cliques_; ++c) add(new_clique_theta_.data()[c], clique_d[c]);
        const double entropy = answer.log_partition - inner - kRounding * magnitude;
        return data_.temperature * entropy + expected_cost(i, d);
    }
    // From mu to mu - u, in moved() and clique_moved().
    void subtract_truth(std::size_t i) {
        for (std::size_t t = 0; t < data_.length(i); ++t)
            moved_.data()[t * n_labels_ + static_cast<std::size_t>(data_.labels[data_.first(i) + t])] -= 1.0;
        truth_.add(i, -1.0, clique_moved_.data());
    }

    // T log Z of given scores; marginals are left in new_mu_ and new_clique_mu_.
    double soft_maximum(std::size_t i, const double* scores, const double* cliques) {
        const std::size_t size = data_.length(i) * n_labels_;
        const double factor = 1.0 / data_.temperature;
        for (std::size_t j = 0; j < size; ++j) new_theta_.data()[j] = factor * scores[j];
        for (std::size_t c = 0; c < n_cliques_; ++c) new_clique_theta_.data()[c] = factor * cliques[c];
        return data_.temperature *
               ask(new_theta_.data(), i, new_clique_theta_.data(), new_mu_.data(), new_clique_mu_.data()).log_partition;
    }

    const double* moved() const { return moved_.data(); }
    const double* clique_moved() const { return clique_moved_.data(); }
    const S* mu(std::size_t i) const { return mu_.data() + data_.first(i) * n_labels_; }
    const S* clique_mu(std::size_t i) const { return clique_mu_.data() + i * n_cliques_; }
    double value(std::size_t i) const { return value_[i]; }
    double& eta(std::size_t i) { return eta_[i]; }

    double expected_cost(std::size_t i, const double* mu) const {
        if (!data_.cost) return 0.0;
        double total = 0.0;
        for (std::size_t t = 0; t < data_.length(i); ++t) {
            const double* cost = data_.cost + static_cast<std::size_t>(data_.labels[data_.first(i) + t]) * n_labels_;
            for (std::size_t k = 0; k < n_labels_; ++k) total += cost[k] * mu[t * n_labels_ + k];
        }
        return total;
    }

    // Asks for the state of an example that comes soon: it lies anywhere.
    void prefetch(std::size_t i) const {
        const auto all = [](const S* numbers, std::size_t n) {
            const auto* bytes = reinterpret_cast<const char*>(numbers);
            for (std::size_t at = 0; at < n * sizeof(S); at += 64) prefetch_line(bytes + at);
        };
        const std::size_t size = data_.length(i) * n_labels_;
        all(theta_.data() + data_.first(i) * n_labels_, size);
        all(mu(i), size);
        all(clique_theta_.data() + i * n_cliques_, n_cliques_);
        all(clique_mu(i), n_cliques_);
    }

    template <class Archive>
    void describe(Archive& archive) {
        archive("theta", theta_);
        archive("mu", mu_);
        archive("clique_theta", clique_theta_);
        archive("clique_mu", clique_mu_);
        archive("value", value_);
        archive("eta", eta_);
    }

  private:
    template <class Other>
    friend class SoftChains;

    static constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
    static constexpr double kSure = 14.0;  // score of the true labels at the start: nearly all mass, and room to move

    S* theta_of(std::size_t i) { return theta_.data() + data_.first(i) * n_labels_; }
    S* mu_of(std::size_t i) { return mu_.data() + data_.first(i) * n_labels_; }
    S* clique_theta_of(std::size_t i) { return clique_theta_.data() + i * n_cliques_; }
    S* clique_mu_of(std::size_t i) { return clique_mu_.data() + i * n_cliques_; }

    ChainBlock::Answer ask(const double* theta, std::size_t i, const double* clique_theta, double* mu,
                           double* clique_mu) {
        const auto answer = block_.marginals(theta, data_.length(i), clique_theta, mu, clique_mu);
        if (answer.status == Status::bad_number)
            throw std::runtime_error("The scores of an example are not finite any more: the features are too large.");
        return answer;
    }

    const ChainData& data_;
    const ChainTruth& truth_;
    ChainBlock block_;
    std::size_t n_labels_, n_cliques_;
    const StateRoutines<S>& state_;
    Aligned<S> theta_, mu_, clique_theta_, clique_mu_;  // [N][K], [N][K], [n][n_cliques], [n][n_cliques]
    std::vector<double> value_, eta_;                   // [n]: T H + <D, mu>, step size
    Buffer new_theta_, new_mu_, moved_, new_clique_theta_, new_clique_mu_, clique_moved_;
};

}  // namespace dualfield
