// The best trees of a sentence, one after another: every entry of the chart keeps a list of its best derivations, which
// grows when somebody asks for the next one (Huang and Chiang 2005, algorithm 3).
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "spans_chart.hpp"

namespace dualfield {

class BestSpans {
  public:
    // The chart has maxima, and stays as it is.
    explicit BestSpans(const SpanChart& chart) : chart_(chart) {
        const std::size_t size = chart.stride() * chart.stride();
        for (auto& lists : lists_) lists.assign(size, {});
        labels_.assign(n_span_rows(chart.n_words()), {});
    }

    // The tree of a rank, the best one of rank 0, asked for in this order; its score, or -inf and labels of -1 if there
    // are not so many.
    double tree(std::size_t rank, std::int32_t* labels) {
        const std::size_t n = chart_.n_words(), n_rows = n_span_rows(n);
        const bool is_there = n == 0 ? rank == 0 : get({kSeq, 0, n}, rank) != nullptr;
        std::fill_n(labels, n_rows, is_there ? 0 : -1);
        if (!is_there) return -kInfinity;
        if (n == 0) return 0.0;
        const double score = chart_.base() + get({kSeq, 0, n}, rank)->score;
        write({kSeq, 0, n}, rank, labels);
        return score;
    }

  private:
    enum Kind : std::size_t { kOne, kTwo, kSeq, kKinds };
    struct Vertex {
        Kind kind;
        std::size_t i, j;
    };
    // Which way (where the first part ends, or one part or two), and the ranks of what it is made of: of the two parts;
    // of the label and of the parts in a bracket; of the sequence.
    struct Derivation {
        double score;
        std::size_t way, a, b;
    };
    struct List {
        bool is_begun = false;
        std::vector<Derivation> found, heap;
    };

    // Equal scores: the lower way first, then the lower ranks.
    static bool is_worse(const Derivation& x, const Derivation& y) {
        if (x.score != y.score) return x.score < y.score;
        if (x.way != y.way) return x.way > y.way;
        return x.a != y.a ? x.a > y.a : x.b > y.b;
    }
    static void push(List& list, double score, std::size_t way, std::size_t a, std::size_t b) {
        if (!(score > -kInfinity)) return;
        list.heap.push_back({score, way, a, b});
        std::push_heap(list.heap.begin(), list.heap.end(), is_worse);
    }
    List& list(const Vertex& v) { return lists_[v.kind][v.i * chart_.stride() + v.j]; }

    // The derivation of a rank; null if there are not so many. Good until the next call.
    const Derivation* get(const Vertex& v, std::size_t rank) {
        if (!list(v).is_begun) {
            list(v).is_begun = true;
            begin(v);
        }
        while (list(v).found.size() <= rank) {
            // What follows the last one is looked for only now.
            if (!list(v).found.empty()) expand(v, Derivation(list(v).found.back()));
            List& own = list(v);
            if (own.heap.empty()) return nullptr;
            std::pop_heap(own.heap.begin(), own.heap.end(), is_worse);
            own.found.push_back(own.heap.back());
            own.heap.pop_back();
        }
        return &list(v).found[rank];
    }
    double score(const Vertex& v, std::size_t rank) {
        const Derivation* found = get(v, rank);
        return found ? found->score : -kInfinity;
    }

    // The labels of a row from the best on; 0, where it may stand, is the bare word.
    const std::vector<std::int32_t>& labels_of(const Vertex& v) {
        std::vector<std::int32_t>& order = labels_[chart_.row(v.i, v.j)];
        if (order.empty()) {
            const bool is_word = v.j - v.i == 1 && !chart_.is_required(chart_.row(v.i, v.j));
            order.resize(chart_.n_labels() - (is_word ? 0 : 1));
            std::iota(order.begin(), order.end(), is_word ? 0 : 1);
            std::stable_sort(order.begin(), order.end(),
                             [&](std::int32_t x, std::int32_t y) { return label_score(v, x) > label_score(v, y); });
        }
        return order;
    }
    double label_score(const Vertex& v, std::int32_t label) const {
        return label == 0 ? 0.0 : chart_.relative(chart_.row(v.i, v.j))[label];
    }
    double one_score(const Vertex& v, std::size_t a, std::size_t b) {
        const auto& order = labels_of(v);
        if (a >= order.size()) return -kInfinity;
        const double label = label_score(v, order[a]);
        if (v.j - v.i == 1) return b == 0 ? label : -kInfinity;
        return label > -kInfinity ? label + score({kTwo, v.i, v.j}, b) : label;
    }

    // The best of each way is known from the chart.
    void begin(const Vertex& v) {
        const std::size_t i = v.i, j = v.j;
        if (!(chart_.seq(i, j) > -kInfinity)) return;  // also where it would cross a bracket that must be there
        if (v.kind == kTwo) {
            for (std::size_t k = i + 1; k < j; ++k) push(list(v), chart_.one(i, k) + chart_.seq(k, j), k, 0, 0);
        } else if (v.kind == kOne) {
            const double first = one_score(v, 0, 0);
            push(list(v), first, 0, 0, 0);
        } else {
            push(list(v), chart_.one(i, j), kOne + 1, 0, 0);
            if (j - i > 1 && !chart_.is_required(chart_.row(i, j))) push(list(v), chart_.two(i, j), kTwo - 1, 0, 0);
        }
    }
    // Ranks (a, b) are reached over (0, 1), ..., (0, b), (1, b), ..., (a, b): once.
    void expand(const Vertex& v, const Derivation& last) {
        const auto [own, way, a, b] = last;
        if (v.kind == kSeq) {
            const double next = score({part_of(way), v.i, v.j}, a + 1);
            push(list(v), next, way, a + 1, 0);
            return;
        }
        const auto made = [&](std::size_t x, std::size_t y) {
            return v.kind == kOne ? one_score(v, x, y) : score({kOne, v.i, way}, x) + score({kSeq, way, v.j}, y);
        };
        const double left = made(a + 1, b);
        push(list(v), left, way, a + 1, b);
        if (a > 0) return;
        const double right = made(a, b + 1);
        push(list(v), right, way, a, b + 1);
    }
    // No bracket goes before a bracket of the same score.
    static Kind part_of(std::size_t way) { return way == kOne + 1 ? kOne : kTwo; }

    void write(const Vertex& v, std::size_t rank, std::int32_t* labels) {
        const Derivation own = *get(v, rank);
        if (v.kind == kSeq) return write({part_of(own.way), v.i, v.j}, own.a, labels);
        if (v.kind == kTwo) {
            write({kOne, v.i, own.way}, own.a, labels);
            return write({kSeq, own.way, v.j}, own.b, labels);
        }
        labels[chart_.row(v.i, v.j)] = labels_of(v)[own.a];
        if (v.j - v.i > 1) write({kTwo, v.i, v.j}, own.b, labels);
    }

    const SpanChart& chart_;
    std::vector<List> lists_[kKinds];
    std::vector<std::vector<std::int32_t>> labels_;
};

}  // namespace dualfield
