// Grammars: the orders of their rules, and the questions, by passes over each sentence (grammar_products.hpp,
// grammar_logs.hpp).
#include "dualfield/structures/parse_trees/grammar.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "../passes.hpp"
#include "dualfield/core/random.hpp"
#include "grammar_derivation.hpp"
#include "grammar_lists.hpp"
#include "grammar_logs.hpp"
#include "grammar_products.hpp"

namespace dualfield {
namespace {

// [n + 1]: where the entries of each key begin when they are sorted by key; `order` gets them, each key's in order.
std::vector<std::int32_t> sorted_by(std::span<const std::int32_t> keys, std::size_t n,
                                    std::vector<std::int32_t>& order) {
    std::vector<std::int32_t> begins(n + 1, 0);
    for (const std::int32_t key : keys) ++begins[static_cast<std::size_t>(key) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    order.resize(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int32_t at) { return keys[static_cast<std::size_t>(at)]; });
    return begins;
}

}  // namespace

GrammarIndex::GrammarIndex(const GrammarRules& rules) {
    by_parent = sorted_by(rules.parent, rules.n_symbols, parents);
    by_terminal = sorted_by(rules.terminal, rules.n_terminals, lexical);
    rule.resize(rules.parent.size());
    std::iota(rule.begin(), rule.end(), 0);
    const auto pair = [&](std::int32_t r) {
        return std::pair(rules.left[static_cast<std::size_t>(r)], rules.right[static_cast<std::size_t>(r)]);
    };
    std::ranges::stable_sort(rule, {}, pair);
    pair_of.resize(rule.size());
    place_of.resize(rule.size());
    by_left.assign(rules.n_symbols + 1, 0);
    for (std::size_t q = 0; q < rule.size(); ++q) {
        const auto r = static_cast<std::size_t>(rule[q]);
        parent.push_back(rules.parent[r]);
        if (q == 0 || pair(rule[q]) != pair(rule[q - 1])) {
            pair_left.push_back(rules.left[r]);
            pair_right.push_back(rules.right[r]);
            pair_first.push_back(static_cast<std::int32_t>(q));
            ++by_left[static_cast<std::size_t>(rules.left[r]) + 1];
        }
        pair_of[r] = static_cast<std::int32_t>(pair_left.size()) - 1;
        place_of[r] = static_cast<std::int32_t>(q);
    }
    pair_first.push_back(static_cast<std::int32_t>(rule.size()));
    std::partial_sum(by_left.begin(), by_left.end(), by_left.begin());
    is_word.assign(rules.n_symbols, 1);
    for (const std::int32_t a : rules.parent) is_word[static_cast<std::size_t>(a)] = 0;
    find_runs();
}

void GrammarIndex::find_runs() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known;
    for (std::size_t p = 0; p < n_pairs(); ++p) {
        const std::int32_t first = pair_first[p], n = pair_first[p + 1] - first;
        bool is_run = n >= kShortestRun;
        for (std::int32_t q = first + 1; is_run && q < first + n; ++q) {
            const auto at = static_cast<std::size_t>(q);
            is_run = rule[at] == rule[at - 1] + 1 && parent[at] == parent[at - 1] + 1;
        }
        run_of.push_back(-1);
        if (!is_run) continue;
        const std::pair key(parent[static_cast<std::size_t>(first)], n);
        run_of.back() = known.try_emplace(key, static_cast<std::int32_t>(known.size())).first->second;
    }
}

std::size_t GrammarIndex::find_pair(std::int32_t left, std::int32_t right) const {
    const auto first = pair_right.begin() + by_left[static_cast<std::size_t>(left)];
    const auto last = pair_right.begin() + by_left[static_cast<std::size_t>(left) + 1];
    const auto found = std::lower_bound(first, last, right);
    return found != last && *found == right ? static_cast<std::size_t>(found - pair_right.begin()) : n_pairs();
}

GrammarStructure::GrammarStructure(GrammarRules rules, std::span<const std::int64_t> offsets,
                                   std::span<const std::int64_t> word_offsets, const std::int32_t* terminals)
    : rules_(std::move(rules)), index_(rules_), word_offsets_(word_offsets), terminals_(terminals) {
    label_offsets_ = offsets;
    parts_.tables.push_back({rules_.n_labels, offsets, offsets.first(offsets.size() - 1)});
    parts_.n_shared = rules_.parent.size() + rules_.terminal.size() + rules_.roots.size();
}

// The passes over one sentence, in one memory.
class GrammarStructure::Pass {
  public:
    explicit Pass(const GrammarStructure& structure)
        : structure_(structure), state_(std::make_unique<State>(structure)) {}

    void begin(std::size_t example, std::size_t from, const ScoreView& view) {
        scores().begin(example, from, view);
        total_ = 0.0;
        is_product_ = false;
    }
    void forget() { scores().forget(); }
    void up_sum() {
        if (is_trivial()) return;
        scores().weigh();
        is_product_ = state_->products.up();
        if (is_product_)
            total_ = state_->products.total();
        else
            up_logs();
    }
    // Sums in logarithms, which draws and entropies need.
    void up_logs() {
        if (is_trivial()) return;
        is_product_ = false;
        logs().up<false>();
        total_ = logs().total();
    }
    void up_max() {
        if (is_trivial()) return;
        logs().up<true>();
        total_ = logs().total();
    }
    // After up_sum.
    void spread(double* own, double* shared) {
        if (is_trivial()) {
            if (shared) std::fill_n(shared, structure_.parts().n_shared, 0.0);
        } else if (is_product_) {
            state_->products.down(own, shared);
        } else {
            logs().down<false>();
            logs().spread(own, shared);
        }
    }
    double total() const { return total_; }
    Status status() const {
        if (state_->scores.is_bad() || !(total_ < kInfinity)) return Status::bad_number;
        return total_ > -kInfinity ? Status::ok : Status::impossible;
    }
    bool is_trivial() const { return state_->scores.is_bad() || state_->scores.n_words() == 0; }
    GrammarLogs& logs() { return state_->logs; }
    GrammarScores& scores() { return state_->scores; }

  private:
    // In one place that does not move: its parts know each other.
    struct State {
        explicit State(const GrammarStructure& structure)
            : scores(structure), products(structure, scores, chart), logs(structure, scores, chart) {}
        GrammarScores scores;
        GrammarChart chart;
        GrammarProducts products;
        GrammarLogs logs;
    };
    const GrammarStructure& structure_;
    std::unique_ptr<State> state_;
    double total_ = 0.0;
    bool is_product_ = false;
};

void GrammarStructure::log_partition(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                                     Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void GrammarStructure::maximum(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                               Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](const Pass& pass, std::size_t i, std::size_t) { out[i] = pass.total(); });
}

void GrammarStructure::marginals(Examples examples, const ScoreView& view, std::size_t n_threads, const PartSums& sums,
                                 double* out, Status* statuses) const {
    for_examples<Pass>(
        *this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t row) {
            out[i] = pass.total();
            pass.spread(sums.own[0] + row * rules_.n_labels, sums.shared ? sums.shared + i * parts_.n_shared : nullptr);
        });
}

void GrammarStructure::argmax(Examples examples, const ScoreView& view, std::size_t n_threads, std::int32_t* labels,
                              Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t row) {
                           if (!pass.is_trivial()) pass.logs().decode(labels + row);
                       });
}

void GrammarStructure::max_marginals(Examples examples, const ScoreView& view, std::size_t n_threads, double* own,
                                     Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t, std::size_t row) {
                           if (pass.is_trivial()) return;
                           pass.logs().down<true>();
                           pass.logs().spread_max(own + row * rules_.n_labels);
                       });
}

void GrammarStructure::entropy(Examples examples, const ScoreView& view, std::size_t n_threads, double* out,
                               Status* statuses) const {
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true, [&](Pass& pass, std::size_t i, std::size_t) {
        out[i] = 0.0;
        if (pass.is_trivial()) return;
        pass.up_logs();
        pass.logs().down<false>();
        out[i] = pass.logs().entropy();
    });
}

void GrammarStructure::sample(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t n_samples,
                              std::uint64_t seed, std::int32_t* labels, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, true,
                       [&](Pass& pass, std::size_t i, std::size_t row) {
                           if (pass.is_trivial()) return;
                           pass.up_logs();
                           RandomStream random(seed, examples.first + i);
                           for (std::size_t s = 0; s < n_samples; ++s)
                               pass.logs().draw([&] { return random.uniform(); }, labels + s * stride + row);
                       });
}

void GrammarStructure::k_best(Examples examples, const ScoreView& view, std::size_t n_threads, std::size_t k,
                              std::int32_t* labels, double* scores, Status* statuses) const {
    const std::size_t stride = first(examples.last) - first(examples.first);
    for_examples<Pass>(*this, examples, view, n_threads, statuses, false,
                       [&](Pass& pass, std::size_t i, std::size_t row) {
                           if (pass.is_trivial()) {
                               std::fill_n(scores + i * k, k, -kInfinity);
                               if (k > 0) scores[i * k] = 0.0;
                               return;
                           }
                           GrammarLists lists(*this, pass.scores(), pass.logs());
                           for (std::size_t r = 0; r < k; ++r)
                               scores[i * k + r] = lists.next(labels + r * stride + row);
                       });
}

// One sentence after another, in the memory of one pass.
class GrammarStructure::OneSentence final : public Block {
  public:
    explicit OneSentence(const GrammarStructure& structure) : pass_(structure) {}

    Answer marginals(std::size_t example, const ScoreView& scores, const PartSums& sums) override {
        begin(example, scores);
        pass_.up_sum();
        if (pass_.status() == Status::ok) pass_.spread(sums.own[0], sums.shared);
        return {pass_.total(), pass_.status()};
    }
    Answer best(std::size_t example, const ScoreView& scores, std::int32_t* labels) override {
        begin(example, scores);
        pass_.up_max();
        if (pass_.status() == Status::ok && !pass_.is_trivial()) pass_.logs().decode(labels);
        return {pass_.total(), pass_.status()};
    }

  private:
    void begin(std::size_t example, const ScoreView& scores) {
        pass_.forget();  // other scores may be in the same place
        pass_.begin(example, example, scores);
    }

    Pass pass_;
};

std::unique_ptr<Block> GrammarStructure::block() const {
    return std::make_unique<OneSentence>(*this);
}

void GrammarStructure::list_parts(std::size_t example, const std::int32_t* labels, PartList& out) const {
    out.own[0].assign(labels, labels + length(example));
    out.shared.clear();
    GrammarDerivation derivation(*this, example);
    if (derivation.find(labels)) derivation.list(out.shared);
}

std::string GrammarStructure::refusal(std::size_t example, const std::int32_t* labels) const {
    GrammarDerivation derivation(*this, example);
    return derivation.find(labels) ? std::string{} : derivation.refusal();
}

std::string GrammarStructure::no_labelling(std::size_t example) const {
    const std::int32_t* codes = terminals(example);
    for (std::size_t i = 0; i < n_words(example); ++i)
        if (codes[i] < 0)
            return std::string("no rule of the grammar has '")
                .append(rules_.unknown_names[static_cast<std::size_t>(-1 - codes[i])])
                .append("', the terminal of word ")
                .append(std::to_string(i))
                .append(rules_.unknown_hint)
                .append(".");
    return std::string("the grammar has no parse of its ")
        .append(std::to_string(n_words(example)))
        .append(" words, or scores of -inf forbid them all.");
}

}  // namespace dualfield
