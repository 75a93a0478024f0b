// Grammars as Python passes them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "dualfield/structures/parse_trees/grammar.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Rows = Input<std::int32_t, 2>;
using Names = std::vector<std::string>;

class BoundGrammar final : public BoundStructure {
  public:
    BoundGrammar(Rows binary, Rows lexical, Codes roots, Codes labels, Offsets offsets, Offsets word_offsets,
                 Codes terminals, Names label_names, Names terminal_names, Names unknown_names,
                 std::string unknown_hint)
        : binary_(binary),
          lexical_(lexical),
          roots_(roots),
          labels_(labels),
          offsets_(checked_offsets(offsets)),
          word_offsets_(checked_offsets(word_offsets)),
          terminals_(terminals),
          structure_(checked(std::move(label_names), std::move(terminal_names), std::move(unknown_names),
                             std::move(unknown_hint)),
                     {offsets_.data(), offsets_.size()}, {word_offsets_.data(), word_offsets_.size()},
                     terminals_.data()) {}
    const Structure& structure() const override { return structure_; }

  private:
    static std::span<const std::int32_t> row(const Rows& rows, std::size_t at) {
        return {rows.data() + at * rows.shape(1), rows.shape(1)};
    }
    static void check_codes(std::span<const std::int32_t> codes, std::size_t n, const char* message) {
        for (const std::int32_t code : codes) require(code >= 0 && static_cast<std::size_t>(code) < n, message);
    }
    GrammarRules checked(Names label_names, Names terminal_names, Names unknown_names, std::string unknown_hint) const {
        require(binary_.shape(0) == 3 && lexical_.shape(0) == 3, "binary and lexical must have three rows");
        const std::size_t n_symbols = labels_.size(), n_labels = label_names.size();
        require(n_labels > 0, "label_names must have an entry");
        for (std::size_t at = 0; at < 3; ++at)
            check_codes(row(binary_, at), n_symbols, "binary rules must have symbols in [0, n_symbols)");
        check_codes(row(lexical_, 0), terminal_names.size(), "lexical rules must have terminals in [0, n_terminals)");
        check_codes(row(lexical_, 1), n_symbols, "lexical rules must have symbols in [0, n_symbols)");
        check_codes(row(lexical_, 2), n_labels, "lexical rules must have labels in [0, n_labels)");
        check_codes({roots_.data(), roots_.size()}, n_symbols, "roots must be symbols");
        check_codes({labels_.data(), labels_.size()}, n_labels, "labels must be in [0, n_labels)");
        check_words(terminal_names.size(), unknown_names.size());
        GrammarRules rules;
        rules.n_symbols = n_symbols;
        rules.n_labels = n_labels;
        rules.n_terminals = terminal_names.size();
        rules.parent = row(binary_, 0);
        rules.left = row(binary_, 1);
        rules.right = row(binary_, 2);
        rules.terminal = row(lexical_, 0);
        rules.symbol = row(lexical_, 1);
        rules.terminal_label = row(lexical_, 2);
        rules.roots = {roots_.data(), roots_.size()};
        rules.label = {labels_.data(), labels_.size()};
        rules.label_names = std::move(label_names);
        rules.terminal_names = std::move(terminal_names);
        rules.unknown_names = std::move(unknown_names);
        rules.unknown_hint = std::move(unknown_hint);
        return rules;
    }
    void check_words(std::size_t n_terminals, std::size_t n_unknown) const {
        require(offsets_.size() == word_offsets_.size(), "offsets and word_offsets must have the same shape");
        for (std::size_t i = 0; i + 1 < offsets_.size(); ++i) {
            const std::int64_t n = word_offsets_.data()[i + 1] - word_offsets_.data()[i];
            require(n < (std::int64_t{1} << 31) && offsets_.data()[i + 1] - offsets_.data()[i] == n * (n + 1) / 2,
                    "offsets must have a row for each span of words");
        }
        require(terminals_.size() == static_cast<std::size_t>(word_offsets_.data()[word_offsets_.size() - 1]),
                "terminals must have one entry for each word");
        for (std::size_t i = 0; i < terminals_.size(); ++i) {
            const std::int64_t code = terminals_.data()[i];
            require(code < static_cast<std::int64_t>(n_terminals) && code >= -static_cast<std::int64_t>(n_unknown),
                    "terminals must be codes of names");
        }
    }

    Rows binary_, lexical_;
    Codes roots_, labels_;
    Offsets offsets_, word_offsets_;
    Codes terminals_;
    GrammarStructure structure_;
};

}  // namespace

void register_grammar(nb::module_& module) {
    nb::class_<BoundGrammar, BoundStructure>(module, "GrammarStructure", "Trees of a context-free grammar.")
        .def(nb::init<Rows, Rows, Codes, Codes, Offsets, Offsets, Codes, Names, Names, Names, std::string>(),
             "binary"_a.noconvert(), "lexical"_a.noconvert(), "roots"_a.noconvert(), "labels"_a.noconvert(),
             "offsets"_a.noconvert(), "word_offsets"_a.noconvert(), "terminals"_a.noconvert(), "label_names"_a,
             "terminal_names"_a, "unknown_names"_a, "unknown_hint"_a);
}

}  // namespace dualfield::bindings
