// Rows of two anchors to attributes. Python objects are read once, to number their values, when an object is made.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "dualfield/text/anchored.hpp"
#include "register.hpp"
#include "value_reader.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

constexpr std::int64_t usual_block = std::int64_t{1} << 18;  // rows that are read before signals are looked at

// Sentences, their rows, and the texts that make attributes of them.
class AnchoredHolder {
  public:
    // `macros` [macros][5]: text, kind, anchor, offset, column; `pieces` are those of one text after another.
    AnchoredHolder(Objects sentences, Opener opened, Input<std::int32_t, 2> anchors, Input<std::int64_t, 1> offsets,
                   const std::vector<std::string>& pieces, Input<std::int32_t, 2> macros, std::size_t n_texts,
                   bool are_arcs, const std::string& owner, const std::string& name)
        : anchors_(anchors), offsets_(offsets) {
        require(macros.shape(1) == 5, "macros must have 5 columns.");
        require(anchors.shape(1) == 2, "anchors must have 2 columns.");
        require(pieces.size() == n_texts + macros.shape(0), "pieces must be one more than the macros of each text.");
        read_form(pieces, macros, n_texts, are_arcs);
        read_tokens(sentences, opened, name, owner);
        require(offsets.shape(0) == tokens_.offsets.size(), "offsets must be one more than sentences.");
        places_ = {{anchors.data(), anchors.size()}, {offsets.data(), offsets.shape(0)}};
        require(places_.offsets.front() == 0 && std::is_sorted(places_.offsets.begin(), places_.offsets.end()),
                "offsets must begin with 0 and not fall.");
        require(places_.offsets.back() == static_cast<std::int64_t>(anchors.shape(0)),
                "offsets must end with the number of anchors.");
        const nb::gil_scoped_release unlocked;
        check_places(form_, tokens_, places_);
    }

    // New attributes become columns everywhere, or in the rows of a mask, or nowhere.
    Rows read(Vocabulary& vocabulary, bool grow, std::optional<Input<bool, 1>> mask, std::size_t n_threads,
              std::int64_t block) const {
        require(!mask || mask->shape(0) == places_.anchors.size() / 2, "mask must have an entry for each row.");
        const AnchoredReader reader(form_, tokens_, places_);
        SparseRows rows;
        std::int64_t n_unknown = 0;
        if (mask)
            for_blocks(block, [&](std::size_t first, std::size_t last) {
                reader.collect(first, last, mask->data(), vocabulary);
            });
        for_blocks(block, [&](std::size_t first, std::size_t last) {
            if (grow)
                reader.grow(first, last, vocabulary, rows);
            else
                n_unknown += reader.find(first, last, vocabulary, n_threads, rows);
        });
        return rows.finished(n_unknown);
    }

  private:
    void read_form(const std::vector<std::string>& pieces, const Input<std::int32_t, 2>& macros, std::size_t n_texts,
                   bool are_arcs) {
        form_ = {are_arcs, std::vector<AnchoredText>(n_texts)};
        for (std::size_t i = 0; i < macros.shape(0); ++i)
            if (macros(i, 4) >= 0) columns_.push_back(macros(i, 4));
        std::sort(columns_.begin(), columns_.end());
        columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
        std::size_t macro = 0, piece = 0;
        for (std::size_t text = 0; text < n_texts; ++text) {
            AnchoredText& one = form_.texts[text];
            one.pieces.push_back(pieces[piece++]);
            for (; macro < macros.shape(0) && macros(macro, 0) == static_cast<std::int32_t>(text); ++macro) {
                require(macros(macro, 1) >= 0 && macros(macro, 1) < 5, "kinds of macros must be in [0, 5).");
                require(macros(macro, 2) == 0 || macros(macro, 2) == 1, "anchors of macros must be 0 or 1.");
                const auto column = std::lower_bound(columns_.begin(), columns_.end(), macros(macro, 4));
                one.macros.push_back({static_cast<AnchoredMacro::Kind>(macros(macro, 1)), macros(macro, 2),
                                      macros(macro, 3), static_cast<std::size_t>(column - columns_.begin())});
                one.pieces.push_back(pieces[piece++]);
            }
        }
        require(macro == macros.shape(0), "macros must be in the order of their texts.");
    }

    void read_tokens(Objects sentences, Opener opened, const std::string& name, const std::string& owner) {
        tokens_.values.resize(columns_.size());
        std::vector<Vocabulary*> values;
        for (Vocabulary& one : tokens_.values) values.push_back(&one);
        ValueReader reader(columns_, std::move(values), columns_.empty() ? 0 : columns_.back() + 1, opened, name,
                           owner);
        Py_ssize_t example = 0;
        for (nb::handle sentence : sentences) {
            // Tokens whose columns nobody reads may be anything.
            const auto length = columns_.empty() ? nb::len(sentence) : reader.read(sentence, example, tokens_.ids);
            if (length > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2))
                throw std::length_error("A sentence must have fewer than 2^30 tokens.");
            tokens_.offsets.push_back(tokens_.offsets.back() + static_cast<std::int64_t>(length));
            ++example;
        }
    }

    template <class Read>
    void for_blocks(std::int64_t block, Read read) const {
        const std::size_t count = tokens_.n_sentences();
        for (std::size_t first = 0, last = 0; first < count; first = last) {
            while (last < count && (last == first || places_.offsets[last + 1] - places_.offsets[first] <= block))
                ++last;
            {
                const nb::gil_scoped_release unlocked;
                read(first, last);
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
    }

    Input<std::int32_t, 2> anchors_;  // kept alive
    Input<std::int64_t, 1> offsets_;
    AnchoredForm form_;
    NumberedTokens tokens_;
    AnchoredPlaces places_;
    std::vector<std::int32_t> columns_;  // of tokens that macros read, ascending
};

}  // namespace

void register_anchored(nb::module_& module) {
    nb::class_<AnchoredHolder>(module, "AnchoredRows", "Rows of two anchors, and texts that make attributes of them.")
        .def(nb::init<Objects, Opener, Input<std::int32_t, 2>, Input<std::int64_t, 1>, const std::vector<std::string>&,
                      Input<std::int32_t, 2>, std::size_t, bool, const std::string&, const std::string&>(),
             nb::kw_only(), "sentences"_a, "opened"_a, "anchors"_a.noconvert(), "offsets"_a.noconvert(), "pieces"_a,
             "macros"_a.noconvert(), "n_texts"_a, "are_arcs"_a, "owner"_a, "name"_a)
        .def("read", &AnchoredHolder::read, nb::kw_only(), "vocabulary"_a, "grow"_a, "mask"_a.noconvert().none(),
             "n_threads"_a, "block"_a = usual_block,
             "indptr, indices, and the number of unknown attributes, which are left out.");
}

}  // namespace dualfield::bindings
