#include "grammar_derivation.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace dualfield {
namespace {

// One text of several.
std::string text_of(std::initializer_list<std::string_view> pieces) {
    std::string text;
    for (const std::string_view piece : pieces) text += piece;
    return text;
}

std::string span_name(std::size_t i, std::size_t j) {
    return text_of({"(", std::to_string(i), ", ", std::to_string(j), ")"});
}

}  // namespace

bool GrammarDerivation::find(const std::int32_t* labels) {
    labels_ = labels;
    entries_.clear();
    refusal_.clear();
    n_seen_ = 0;
    if (n_ == 0) return true;
    std::size_t n_brackets = 0;
    ends_.assign(n_, {});
    for (std::size_t i = 0; i < n_; ++i)
        for (std::size_t j = n_; j > i + 1; --j)
            if (label(i, j) != 0) {
                ends_[i].push_back(j);
                ++n_brackets;
            }
    const Entries top = n_ == 1 ? word(0) : bracket(0, n_);
    if (!refusal_.empty()) return false;
    if (n_seen_ < n_brackets) {
        refusal_ = "its brackets cross.";
        return false;
    }
    for (root_ = 0; root_ < rules_.roots.size(); ++root_)
        for (const std::size_t entry : top)
            if (entries_[entry].symbol == rules_.roots[root_]) {
                top_ = entry;
                return true;
            }
    refusal_ = text_of({"'", name_of(0, n_), "' is not a symbol of whole sentences."});
    return false;
}

void GrammarDerivation::list(std::vector<std::int32_t>& shared) const {
    if (n_ == 0) return;
    shared.push_back(static_cast<std::int32_t>(structure_.root_part(root_)));
    std::vector<std::size_t> open{top_};
    while (!open.empty()) {
        const Entry& entry = entries_[open.back()];
        open.pop_back();
        const bool is_word = entry.left == kWord;
        shared.push_back(static_cast<std::int32_t>(is_word ? structure_.lexical_part(entry.rule) : entry.rule));
        if (!is_word) open.insert(open.end(), {entry.right, entry.left});
    }
}

// Where the part that begins at a place ends: that of the longest bracket inside of (i, j), or of a word.
std::size_t GrammarDerivation::end_of_part(std::size_t i, std::size_t j, std::size_t at) const {
    for (const std::size_t end : ends_[at])
        if (end < j || (end == j && at > i)) return end;
    return at + 1;
}

GrammarDerivation::Entries GrammarDerivation::bracket(std::size_t i, std::size_t j) {
    n_seen_ += label(i, j) != 0;
    std::vector<Entries> parts;
    std::vector<std::size_t> begins;
    for (std::size_t at = i; at < j;) {
        const std::size_t end = end_of_part(i, j, at);
        begins.push_back(at);
        parts.push_back(end == at + 1 ? word(at) : bracket(at, end));
        if (!refusal_.empty()) return {};
        at = end;
    }
    Entries found = join(parts, label(i, j));
    if (found.empty()) {
        refusal_ = text_of({"the grammar has no rule ", label(i, j) != 0 ? name_of(i, j) : "without a label", " ->"});
        begins.push_back(j);
        for (std::size_t part = 0; part + 1 < begins.size(); ++part)
            refusal_ += text_of({" ", name_of(begins[part], begins[part + 1])});
        refusal_ += text_of({", which the span ", span_name(i, j), " needs."});
    }
    return found;
}

GrammarDerivation::Entries GrammarDerivation::word(std::size_t i) {
    Entries found;
    if (terminals_[i] < 0) {
        refusal_ = text_of(
            {"no rule of the grammar has '", terminal_name(i), "', the terminal of word ", std::to_string(i), "."});
        return found;
    }
    const auto t = static_cast<std::size_t>(terminals_[i]);
    for (auto at = index_.by_terminal[t]; at < index_.by_terminal[t + 1]; ++at) {
        const auto rule = static_cast<std::size_t>(index_.lexical[static_cast<std::size_t>(at)]);
        if (rules_.terminal_label[rule] != label(i, i + 1)) continue;
        found.push_back(entries_.size());
        entries_.push_back({rules_.symbol[rule], rule, kWord, kWord});
    }
    if (found.empty()) {
        const auto own = static_cast<std::size_t>(label(i, i + 1));
        refusal_ = text_of({"the grammar has no rule ", own != 0 ? rules_.label_names[own] : "without a label", " -> ",
                            terminal_name(i), ", which word ", std::to_string(i), " needs."});
    }
    return found;
}

// Symbols of some parts in a row: all binary trees over them whose inner nodes have no label.
GrammarDerivation::Entries GrammarDerivation::join(const std::vector<Entries>& parts, std::int32_t label) {
    const std::size_t m = parts.size();
    std::vector<Entries> table(m * (m + 1));
    const auto at = [&](std::size_t a, std::size_t b) -> Entries& { return table[a * (m + 1) + b]; };
    for (std::size_t a = 0; a < m; ++a) at(a, a + 1) = parts[a];
    for (std::size_t width = 2; width <= m; ++width)
        for (std::size_t a = 0; a + width <= m; ++a)
            for (std::size_t k = a + 1; k < a + width; ++k)
                add(at(a, a + width), at(a, k), at(k, a + width), width == m, label);
    return m > 1 ? at(0, m) : Entries{};
}

void GrammarDerivation::add(Entries& out, const Entries& left, const Entries& right, bool is_whole,
                            std::int32_t label) {
    for (const std::size_t l : left)
        for (const std::size_t r : right) {
            const std::size_t pair = index_.find_pair(entries_[l].symbol, entries_[r].symbol);
            if (pair == index_.n_pairs()) continue;
            for (auto q = static_cast<std::size_t>(index_.pair_first[pair]),
                      end = static_cast<std::size_t>(index_.pair_first[pair + 1]);
                 q < end; ++q) {
                const std::int32_t parent = index_.parent[q];
                if (rules_.label[static_cast<std::size_t>(parent)] != (is_whole ? label : 0)) continue;
                if (std::ranges::any_of(out, [&](std::size_t one) { return entries_[one].symbol == parent; })) continue;
                out.push_back(entries_.size());
                entries_.push_back({parent, static_cast<std::size_t>(index_.rule[q]), l, r});
            }
        }
}

std::string GrammarDerivation::name_of(std::size_t i, std::size_t j) const {
    const auto own = static_cast<std::size_t>(label(i, j));
    if (own != 0) return rules_.label_names[own];
    return j == i + 1 ? terminal_name(i) : "(no label)";
}

std::string GrammarDerivation::terminal_name(std::size_t i) const {
    const std::int32_t code = terminals_[i];
    return code < 0 ? rules_.unknown_names[static_cast<std::size_t>(-1 - code)]
                    : rules_.terminal_names[static_cast<std::size_t>(code)];
}

}  // namespace dualfield
