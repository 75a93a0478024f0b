// The weights that score one label at one node, looked up once for as long as that label matters there; and those that
// score a pair of labels at one edge, whose rows follow those of the nodes.
//
// Only a part of all weights is ever on a list. These are kept side by side, the most used ones first, so that sweeps
// over lists find them in the caches; they are written back to the vector of all parameters when it is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dualfield/objectives/problem.hpp"
#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/text/vocabulary.hpp"

namespace dualfield {

// Read at random, and large: in huge pages where the system has them.
template <class T>
using Table = std::vector<T, TableAllocator<T>>;

class FeatureLists {
  public:
    // Numbers of weights, each once; weights of the ends of chains included.
    struct List {
        const std::uint32_t* numbers;
        const double* values;  // null: all are 1
        std::uint32_t count;
        double square;  // sum of the squared values
    };

    // w [problem.size()] is the vector of all parameters, mean that of their weighted means.
    // The features must be prepared.
    FeatureLists(const Problem& problem, double* w, double* mean)
        : w_(w), mean_(mean), number_of_(problem.size(), kNone) {
        const ScoreMap& scores = *problem.scores;
        std::size_t n_rows = 0;
        for (std::size_t g = 0; g < scores.parts().tables.size(); ++g) {
            sources_.push_back({scores.table(g).map, &scores.table(g).rows, g == 0 ? scores.plan() : nullptr, n_rows,
                                static_cast<std::uint32_t>(scores.table_begin(g))});
            n_rows += static_cast<std::size_t>(scores.parts().tables[g].offsets.back());
        }
        heads_.assign(n_rows, kNone);
        const auto* chain = problem.structure->chain();
        if (!chain || !chain->with_ends()) return;
        first_label_ = scores.shared_begin() + chain->start_begin();
        last_label_ = scores.shared_begin() + chain->stop_begin();
        ends_.assign(problem.n_nodes(), 0);
        for (std::size_t i = 0; i < problem.n_examples(); ++i) {
            if (problem.length(i) == 0) continue;
            ends_[problem.first(i)] |= kFirst;
            ends_[problem.first(i + 1) - 1] |= kLast;
        }
    }

    // Valid until the next list is made.
    List get(std::size_t row, std::uint32_t label) {
        std::uint32_t at = heads_[row];
        while (at != kNone && entries_[at].label != label) at = entries_[at].next;
        if (at == kNone) at = make(row, label);
        return view(entries_[at]);
    }

    // Two lists at once, both valid.
    void get(std::size_t row, std::uint32_t label, std::uint32_t other, List& one, List& two) {
        one = get(row, label);
        const std::size_t before = entries_.size();
        two = get(row, other);
        if (entries_.size() != before) one = get(row, label);
    }

    double dot(const List& list) const {
        double first = 0.0, second = 0.0;
        std::uint32_t i = 0;
        if (!list.values) {
            for (; i + 1 < list.count; i += 2) {
                first += cells_[list.numbers[i]];
                second += cells_[list.numbers[i + 1]];
            }
            if (i < list.count) first += cells_[list.numbers[i]];
        } else {
            for (; i + 1 < list.count; i += 2) {
                first += list.values[i] * cells_[list.numbers[i]];
                second += list.values[i + 1] * cells_[list.numbers[i + 1]];
            }
            if (i < list.count) first += list.values[i] * cells_[list.numbers[i]];
        }
        return first + second;
    }
    // weights += factor * values.
    void add(const List& list, double factor) {
        for (std::uint32_t i = 0; i < list.count; ++i) {
            double& weight = cells_[list.numbers[i]];
            weight += list.values ? factor * list.values[i] : factor;
            if (is_written_through) w_[place_of_[list.numbers[i]]] = weight;
        }
    }

    // The square of a sum of lists, which may share weights.
    void begin_sum() { summed_.clear(); }
    void add_to_sum(const List& list, double sign) {
        sums_.resize(cells_.size(), 0.0);
        for (std::uint32_t i = 0; i < list.count; ++i) {
            double& sum = sums_[list.numbers[i]];
            if (sum == 0.0) summed_.push_back(list.numbers[i]);
            sum += list.values ? sign * list.values[i] : sign;
        }
    }
    double square_of_sum() {
        double square = 0.0;
        for (const std::uint32_t number : summed_) {
            // One that came back to zero in between is listed twice: the second time nothing is left.
            square += sums_[number] * sums_[number];
            sums_[number] = 0.0;
        }
        return square;
    }

    // Whether changes go to the vector of all parameters at once.
    bool is_written_through = true;
    void write_back() {
        for (std::size_t n = 0; n < cells_.size(); ++n) w_[place_of_[n]] = cells_[n];
    }

    // Means of weights over several points, of which the last one is written back: mean += share * (weight - mean) for
    // each. Weights that are on no list do not change meanwhile, so theirs can wait until the end.
    void begin_means() {
        means_.resize(cells_.size());
        for (std::size_t n = 0; n < cells_.size(); ++n) means_[n] = mean_[place_of_[n]];
        rest_ = 1.0;
    }
    void take_into_means(double share) {
        for (std::size_t n = 0; n < cells_.size(); ++n) means_[n] += share * (cells_[n] - means_[n]);
        rest_ *= 1.0 - share;
    }
    void end_means() {
        write_back();
        for (std::size_t j = 0; j < number_of_.size(); ++j) mean_[j] = w_[j] + rest_ * (mean_[j] - w_[j]);
        for (std::size_t n = 0; n < cells_.size(); ++n) mean_[place_of_[n]] = means_[n];
    }
    void read_again() {
        for (std::size_t n = 0; n < cells_.size(); ++n) cells_[n] = w_[place_of_[n]];
    }

    // Keeps the lists that `is_used(row, label)` says are needed, in the order of the nodes.
    template <class IsUsed>
    void compact(const IsUsed& is_used) {
        write_back();
        Table<Entry> entries;
        Table<std::uint32_t> numbers;
        Table<double> values;
        for (std::size_t row = 0; row < heads_.size(); ++row) {
            std::uint32_t head = kNone;
            for (std::uint32_t at = heads_[row]; at != kNone; at = entries_[at].next) {
                Entry entry = entries_[at];
                if (!is_used(row, entry.label)) continue;
                const auto from = numbers_.begin() + static_cast<std::ptrdiff_t>(entry.begin);
                const auto begin = numbers.size();
                numbers.insert(numbers.end(), from, from + entry.count);
                if (!values_.empty()) {
                    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(entry.begin);
                    values.insert(values.end(), first, first + entry.count);
                }
                entry.begin = begin;
                entry.next = head;
                head = static_cast<std::uint32_t>(entries.size());
                entries.push_back(entry);
            }
            heads_[row] = head;
        }
        entries_.swap(entries);
        numbers_.swap(numbers);
        values_.swap(values);
        number_anew();
    }

    // Asks for what describes the lists of a node, and later for the weights on them.
    void prefetch_lists(std::size_t row) const {
        for (std::uint32_t at = heads_[row]; at != kNone; at = entries_[at].next) {
            const std::uint32_t* own = numbers_.data() + entries_[at].begin;
            for (std::uint32_t i = 0; i < entries_[at].count; i += 16) prefetch_line(own + i);
        }
    }
    void prefetch_weights(std::size_t row) const {
        for (std::uint32_t at = heads_[row]; at != kNone; at = entries_[at].next) {
            const std::uint32_t* own = numbers_.data() + entries_[at].begin;
            for (std::uint32_t i = 0; i < entries_[at].count; ++i) prefetch_line(cells_.data() + own[i]);
        }
    }

  private:
    static constexpr std::uint32_t kNone = 0xffffffffu;
    static constexpr std::uint8_t kFirst = 1, kLast = 2;
    struct Entry {
        std::size_t begin;
        double square;
        std::uint32_t label, count, next;
    };
    struct Item {
        std::uint32_t place;
        double value;
    };

    // Most used weights first; those that are on no list any more are left out.
    void number_anew() {
        Table<std::uint32_t> uses(cells_.size(), 0), order;
        for (const std::uint32_t number : numbers_) ++uses[number];
        for (std::uint32_t n = 0; n < cells_.size(); ++n)
            if (uses[n] > 0)
                order.push_back(n);
            else
                number_of_[place_of_[n]] = kNone;
        std::sort(order.begin(), order.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return uses[a] != uses[b] ? uses[a] > uses[b] : a < b; });
        Table<double> cells(order.size());
        Table<std::uint32_t> places(order.size());
        for (std::uint32_t n = 0; n < order.size(); ++n) {
            cells[n] = cells_[order[n]];
            places[n] = place_of_[order[n]];
            uses[order[n]] = n;  // from here on the new number
            number_of_[places[n]] = n;
        }
        for (std::uint32_t& number : numbers_) number = uses[number];
        cells_.swap(cells);
        place_of_.swap(places);
    }

    std::uint32_t number_of(std::uint32_t place) {
        if (number_of_[place] == kNone) {
            number_of_[place] = static_cast<std::uint32_t>(cells_.size());
            cells_.push_back(w_[place]);
            // Not on a list so far, its weight has not changed since the means began.
            means_.resize(cells_.size());
            means_.back() = w_[place] + rest_ * (mean_[place] - w_[place]);
            place_of_.push_back(place);
        }
        return number_of_[place];
    }

    List view(const Entry& entry) const {
        return {numbers_.data() + entry.begin, values_.empty() ? nullptr : values_.data() + entry.begin, entry.count,
                entry.square};
    }

    // Where the rows of a table of own parts have their features, and where its weights begin.
    struct Source {
        const LinearMap* map;
        const FeatureRows* rows;
        const FeaturePlan* plan;
        std::size_t first_row;
        std::uint32_t begin;
    };

    void take_column(const Source& from, std::size_t column, double value, std::uint32_t label) {
        const LinearMap& map = *from.map;
        const LinearMap::Place place = map.places()[column];
        if (place.count == LinearMap::kWhole) return take_whole(from, place.start, value, label);
        for (std::uint32_t l = 0; l < place.count; ++l)
            if (static_cast<std::uint32_t>(map.listed_outputs()[place.start + l]) == label)
                items_.push_back(
                    {from.begin + static_cast<std::uint32_t>(map.listed_begin()) + place.start + l, value});
    }
    void take_whole(const Source& from, std::uint32_t whole, double value, std::uint32_t label) {
        const LinearMap& map = *from.map;
        const std::size_t vectors = map.width() / kLanes;
        if (map.masks()[whole * vectors + label / kLanes] >> (label % kLanes) & 1u)
            items_.push_back({from.begin + static_cast<std::uint32_t>(whole * map.width() + label), value});
    }

    std::uint32_t make(std::size_t row, std::uint32_t label) {
        items_.clear();
        const Source& from = sources_.size() > 1 && row >= sources_[1].first_row ? sources_[1] : sources_[0];
        const std::size_t at = row - from.first_row;
        if (from.plan) {
            const FeaturePlan::Row own = from.plan->row(at);
            for (std::size_t i = 0; i < own.whole.size(); ++i)
                take_whole(from, own.whole[i], own.whole_values ? own.whole_values[i] : 1.0, label);
            const auto begin = from.begin + static_cast<std::uint32_t>(from.map->listed_begin());
            for (std::size_t i = 0; i < own.listed.size(); ++i)
                if (static_cast<std::uint32_t>(own.outputs[i]) == label)
                    items_.push_back({begin + own.listed[i], own.listed_values ? own.listed_values[i] : 1.0});
        } else if (from.rows->dense) {
            const double* dense = from.rows->dense + at * from.rows->n_columns;
            for (std::size_t c = 0; c < from.rows->n_columns; ++c)
                if (dense[c] != 0.0) take_column(from, c, dense[c], label);
        } else {
            for (std::int64_t q = from.rows->indptr[at]; q < from.rows->indptr[at + 1]; ++q)
                take_column(from, static_cast<std::size_t>(from.rows->indices[q]),
                            from.rows->values ? from.rows->values[q] : 1.0, label);
        }
        if (!ends_.empty()) {
            if (ends_[row] & kFirst) items_.push_back({static_cast<std::uint32_t>(first_label_) + label, 1.0});
            if (ends_[row] & kLast) items_.push_back({static_cast<std::uint32_t>(last_label_) + label, 1.0});
        }
        return keep(row, label);
    }

    // Columns may occur twice in a row: their values add up.
    std::uint32_t keep(std::size_t row, std::uint32_t label) {
        std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.place < b.place; });
        std::size_t n = 0;
        for (const Item& item : items_) {
            if (n > 0 && items_[n - 1].place == item.place)
                items_[n - 1].value += item.value;
            else
                items_[n++] = item;
        }
        items_.resize(n);
        Entry entry{numbers_.size(), 0.0, label, static_cast<std::uint32_t>(n), heads_[row]};
        bool ones = true;
        for (const Item& item : items_) {
            numbers_.push_back(number_of(item.place));
            entry.square += item.value * item.value;
            ones = ones && item.value == 1.0;
        }
        if (!ones || !values_.empty()) {
            values_.resize(entry.begin, 1.0);  // lists so far had ones
            for (const Item& item : items_) values_.push_back(item.value);
        }
        heads_[row] = static_cast<std::uint32_t>(entries_.size());
        entries_.push_back(entry);
        return heads_[row];
    }

    std::vector<Source> sources_;                   // by table
    std::size_t first_label_ = 0, last_label_ = 0;  // where the weights of the ends begin
    double *w_, *mean_;
    Table<std::uint32_t> heads_;      // by row: the list that was made last
    Table<std::uint32_t> number_of_;  // [problem.size()]
    Table<std::uint32_t> place_of_;   // by number
    Table<double> cells_;             // weights by number
    Table<double> means_;             // by number
    double rest_ = 1.0;               // share of the old means in the new ones
    Table<double> sums_;              // by number; zeros between sums
    Table<std::uint32_t> summed_;
    Table<Entry> entries_;
    Table<std::uint32_t> numbers_;
    Table<double> values_;  // empty as long as all are 1
    Table<std::uint8_t> ends_;
    std::vector<Item> items_;
};

}  // namespace dualfield
