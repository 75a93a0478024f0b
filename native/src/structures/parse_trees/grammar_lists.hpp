// The best derivations of a sentence, one after another (Huang and Chiang 2005, algorithm 3): each symbol of a span
// lists its own, only as far as the list of the whole sentence asks for.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "grammar_logs.hpp"

namespace dualfield {

class GrammarLists {
  public:
    // The passes have gone up with maxima.
    GrammarLists(const GrammarStructure& structure, const GrammarScores& scores, const GrammarLogs& logs)
        : rules_(structure.rules()), index_(structure.index()), scores_(scores), logs_(logs), n_(logs.n_words()) {
        labels_.resize(rules_.n_labels);
        for (std::size_t r = 0; r < rules_.roots.size(); ++r)
            if (logs_.root(r) > -kInfinity) top_.heap.push_back({logs_.root(r), {r, 0, logs_.root(r)}, 0, 0});
        std::ranges::make_heap(top_.heap, is_worse);
    }

    // The score of the next derivation, and its labels; minus infinity and -1 when there are no more.
    double next(std::int32_t* labels) {
        std::fill_n(labels, n_ * (n_ + 1) / 2, 0);
        if (!top_.found.empty()) {
            Derivation after = top_.found.back();
            const std::int32_t symbol = rules_.roots[after.way.rule];
            if (const Derivation* more = get(0, n_, symbol, ++after.left)) {
                after.score = more->score + scores_.root(after.way.rule);
                push(top_, after);
            }
        }
        if (top_.heap.empty()) {
            std::fill_n(labels, n_ * (n_ + 1) / 2, -1);
            return -kInfinity;
        }
        const Derivation best = pop(top_);
        write(0, n_, rules_.roots[best.way.rule], best.left, labels);
        return best.score + scores_.base();
    }

  private:
    struct Derivation {
        double score;
        GrammarLogs::Way way;
        std::size_t left, right;  // which derivations of its parts
    };
    struct Vertex {
        std::vector<Derivation> found, heap;
        double label = 0.0;
    };
    static bool is_worse(const Derivation& a, const Derivation& b) {
        if (a.score != b.score) return a.score < b.score;
        return a.way.rule != b.way.rule ? a.way.rule > b.way.rule : a.way.split > b.way.split;
    }
    static void push(Vertex& vertex, const Derivation& one) {
        vertex.heap.push_back(one);
        std::ranges::push_heap(vertex.heap, is_worse);
    }
    static const Derivation& pop(Vertex& vertex) {
        std::ranges::pop_heap(vertex.heap, is_worse);
        vertex.found.push_back(vertex.heap.back());
        vertex.heap.pop_back();
        return vertex.found.back();
    }

    Vertex& vertex(std::size_t i, std::size_t j, std::int32_t symbol) {
        const std::size_t key = (i * (n_ + 1) + j) * index_.n_symbols() + static_cast<std::size_t>(symbol);
        const auto [at, is_new] = vertices_.try_emplace(key);
        Vertex& found = at->second;
        if (is_new) {
            if (j > i + 1) {
                scores_.labels_of(i, j, labels_.data());
                found.label = labels_[static_cast<std::size_t>(rules_.label[static_cast<std::size_t>(symbol)])];
            }
            logs_.list_ways(i, j, symbol, [&](const GrammarLogs::Way& way) {
                found.heap.push_back({way.score + found.label, way, 0, 0});
            });
            std::ranges::make_heap(found.heap, is_worse);
        }
        return found;
    }

    // The derivation of a rank; null if there are not so many. Every pair of ranks is reached in one way: the right one
    // grows last.
    const Derivation* get(std::size_t i, std::size_t j, std::int32_t symbol, std::size_t rank) {
        Vertex& here = vertex(i, j, symbol);
        while (here.found.size() <= rank) {
            if (j > i + 1 && !here.found.empty()) {
                const Derivation last = here.found.back();
                if (last.right == 0) follow(here, i, j, last, last.left + 1, 0);
                follow(here, i, j, last, last.left, last.right + 1);
            }
            if (here.heap.empty()) return nullptr;
            pop(here);
        }
        return &here.found[rank];
    }
    void follow(Vertex& here, std::size_t i, std::size_t j, const Derivation& last, std::size_t left,
                std::size_t right) {
        const std::size_t rule = last.way.rule, split = last.way.split;
        const Derivation* one = get(i, split, rules_.left[rule], left);
        if (!one) return;
        const double score = one->score;
        const Derivation* two = get(split, j, rules_.right[rule], right);
        if (!two) return;
        const double whole = scores_.binary()[index_.place_of[rule]] + (score + two->score) + here.label;
        push(here, {whole, last.way, left, right});
    }

    void write(std::size_t i, std::size_t j, std::int32_t symbol, std::size_t rank, std::int32_t* labels) {
        const Derivation one = *get(i, j, symbol, rank);
        logs_.write(i, j, symbol, one.way, labels);
        if (j == i + 1) return;
        write(i, one.way.split, rules_.left[one.way.rule], one.left, labels);
        write(one.way.split, j, rules_.right[one.way.rule], one.right, labels);
    }

    const GrammarRules& rules_;
    const GrammarIndex& index_;
    const GrammarScores& scores_;
    const GrammarLogs& logs_;
    std::size_t n_;
    std::vector<double> labels_;
    Vertex top_;
    std::unordered_map<std::size_t, Vertex> vertices_;
};

}  // namespace dualfield
