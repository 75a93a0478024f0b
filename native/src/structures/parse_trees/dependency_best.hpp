// The k best trees, one after another, from the charts of maxima: algorithm 3 of Huang and Chiang (2005). An entry of a
// chart is made of up to three others, for each split of its span; its r-th best way is found when somebody asks for
// it.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <tuple>
#include <vector>

#include "dependency_pass.hpp"

namespace dualfield {

class DependencyStructure::Best {
  public:
    // After a pass up with maxima, which must not move on.
    explicit Best(const Pass& pass) : pass_(pass), n_(pass.n_words()), places_(kKinds * (n_ + 1) * (n_ + 1), -1) {
        top_ = pass.is_single() || n_ == 0 ? entry({Kind::top, 0, n_}) : entry({Kind::right, 0, n_});
    }

    // The next tree and its score; -1 and minus infinity when there are no more.
    double next(std::int32_t* labels) {
        if (n_ == 0 ? n_given_ > 0 : !has(top_, n_given_)) {
            std::fill_n(labels, n_ * n_, -1);
            return -kInfinity;
        }
        const std::size_t rank = n_given_++;
        if (n_ == 0) return pass_.base();
        std::fill_n(labels, n_ * n_, 0);
        write(top_, rank, labels);
        return pass_.base() + score(top_, rank);
    }

  private:
    enum class Kind : std::size_t { top, right, left, both, arc };  // of arcs: from `first` to `last`
    static constexpr std::size_t kKinds = 5;
    struct Item {
        Kind kind;
        std::size_t first, last;
    };
    using Ranks = std::array<std::uint32_t, 3>;
    struct Way {
        double score;
        std::size_t split;
        Ranks ranks;
    };
    // Among equals the first split, as in argmax.
    static bool is_worse(const Way& a, const Way& b) {
        if (a.score != b.score) return a.score < b.score;
        return std::tie(a.split, a.ranks) > std::tie(b.split, b.ranks);
    }
    struct Entry {
        Item item;
        bool is_begun = false;
        std::size_t n_followed = 0;          // found ways whose followers are candidates
        std::vector<Way> found, candidates;  // best first; a heap
    };
    struct Tails {
        std::array<Item, 3> items;
        std::size_t count;
    };

    // What an item is made of at a split.
    static Tails tails(const Item& item, std::size_t k, std::size_t n) {
        const std::size_t i = item.first, j = item.last;
        switch (item.kind) {
            case Kind::top:
                return {{{{Kind::arc, 0, k}, {Kind::left, 1, k}, {Kind::right, k, n}}}, 3};
            case Kind::right:
                return {{{{Kind::both, i, k}, {Kind::arc, i, k}, {Kind::right, k, j}}}, 3};
            case Kind::left:
                return {{{{Kind::left, i, k}, {Kind::arc, j, k}, {Kind::both, k, j}}}, 3};
            default:
                return {{{{Kind::right, i, k}, {Kind::left, k + 1, j}, {Kind::left, j, j}}}, 2};
        }
    }
    static bool is_single_word(const Item& item) {
        return item.first == item.last && item.kind != Kind::arc && item.kind != Kind::top;
    }

    std::size_t entry(const Item& item) {
        const auto kind = static_cast<std::size_t>(item.kind);
        std::int64_t& place = places_[(kind * (n_ + 1) + item.first) * (n_ + 1) + item.last];
        if (place < 0) {
            place = static_cast<std::int64_t>(entries_.size());
            entries_.push_back({item, false, 0, {}, {}});
        }
        return static_cast<std::size_t>(place);
    }
    double score(std::size_t at, std::size_t rank) const { return entries_[at].found[rank].score; }

    // The best score of an item: what the chart has.
    double chart(const Item& item) const {
        switch (item.kind) {
            case Kind::right:
                return pass_.up(ArcTask::kRight, item.first, item.last);
            case Kind::left:
                return pass_.up(ArcTask::kLeft, item.first, item.last);
            case Kind::both:
                return pass_.up(ArcTask::kBoth, item.first, item.last);
            default:
                return pass_.arc(item.first, item.last);
        }
    }

    // Whether an entry has so many ways and one more; finds them.
    bool has(std::size_t at, std::size_t rank) {
        Entry& one = entries_[at];  // stays where it is in a deque
        if (!one.is_begun) begin(one);
        while (one.found.size() <= rank) {
            if (one.n_followed < one.found.size()) follow(one);
            if (one.candidates.empty()) return false;
            std::ranges::pop_heap(one.candidates, is_worse);
            one.found.push_back(one.candidates.back());
            one.candidates.pop_back();
        }
        return true;
    }

    void begin(Entry& one) {
        const Item item = one.item;
        one.is_begun = true;
        if (item.kind == Kind::arc) {
            begin_arc(one);
        } else if (is_single_word(item)) {
            one.found.push_back({0.0, 0, {}});
            one.n_followed = 1;
        } else {
            // Children of the root and last children on the right are behind the first position.
            const std::size_t more = item.kind == Kind::top || item.kind == Kind::right ? 1 : 0;
            for (std::size_t k = item.first + more; k < item.last + more; ++k) {
                const Tails parts = tails(item, k, n_);
                double sum = 0.0;
                for (std::size_t t = 0; t < parts.count; ++t) sum += chart(parts.items[t]);
                if (sum > -kInfinity) one.candidates.push_back({sum, k, {}});
            }
            std::ranges::make_heap(one.candidates, is_worse);
        }
    }
    // All labels of an arc, best first; among equals the lowest.
    void begin_arc(Entry& one) {
        const double* in = pass_.labels_of(one.item.first, one.item.last);
        const double best = chart(one.item), highest = *std::max_element(in + 1, in + pass_.n_labels());
        for (std::size_t k = 1; k < pass_.n_labels(); ++k)
            if (in[k] > -kInfinity && best > -kInfinity)
                one.found.push_back({best + pass_.factor() * (in[k] - highest), k, {}});
        std::ranges::stable_sort(one.found, [](const Way& a, const Way& b) { return a.score > b.score; });
        one.n_followed = one.found.size();
    }

    // Candidates after the last found way: the same split with the next way of one part. Each is reached once, by
    // raising ranks from the first part on.
    void follow(Entry& one) {
        const Way way = one.found[one.n_followed++];
        const Tails parts = tails(one.item, way.split, n_);
        std::size_t from = 0;
        for (std::size_t t = 0; t < parts.count; ++t)
            if (way.ranks[t] > 0) from = t;
        for (std::size_t t = from; t < parts.count; ++t) {
            Way next = way;
            if (!has(entry(parts.items[t]), ++next.ranks[t])) continue;
            next.score = 0.0;
            for (std::size_t s = 0; s < parts.count; ++s) {
                const std::size_t part = entry(parts.items[s]);
                has(part, next.ranks[s]);
                next.score += score(part, next.ranks[s]);
            }
            one.candidates.push_back(next);
            std::ranges::push_heap(one.candidates, is_worse);
        }
    }

    void write(std::size_t at, std::size_t rank, std::int32_t* labels) {
        has(at, rank);
        const Item item = entries_[at].item;
        const Way way = entries_[at].found[rank];
        if (item.kind == Kind::arc) {
            labels[row(n_, item.first, item.last - 1)] = static_cast<std::int32_t>(way.split);
        } else if (!is_single_word(item)) {
            const Tails parts = tails(item, way.split, n_);
            for (std::size_t t = 0; t < parts.count; ++t) write(entry(parts.items[t]), way.ranks[t], labels);
        }
    }

    const Pass& pass_;
    std::size_t n_, top_ = 0, n_given_ = 0;
    std::vector<std::int64_t> places_;  // [kinds][n + 1][n + 1]: which entry; -1: none yet
    std::deque<Entry> entries_;
};

}  // namespace dualfield
