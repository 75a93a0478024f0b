// Rows of sentences from several pieces of a corpus to one partition.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "dualfield/text/corpus_rows.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

template <class T>
using MaybeInput = std::optional<Input<T, 1>>;
using Source = std::tuple<Input<std::int64_t, 1>, Input<std::int64_t, 1>, Input<std::int32_t, 1>, MaybeInput<double>,
                          MaybeInput<std::int32_t>>;

template <class T>
std::span<const T> span_of(const Input<T, 1>& array) {
    return {array.data(), array.size()};
}
template <class T>
std::span<const T> span_of(const MaybeInput<T>& array) {
    return array ? span_of(*array) : std::span<const T>();
}

template <class T>
auto copied(const std::vector<T>& values) {
    Output<T> array({values.size()});
    std::copy(values.begin(), values.end(), array.data());
    return array.release();
}

auto gather(const std::vector<Source>& sources, Input<std::int32_t, 1> which, Input<std::int64_t, 1> sentences,
            bool weighted) {
    require(which.size() == sentences.size(), "which and sentences must be of one length");
    std::vector<SentenceRows> rows;
    for (const auto& [offsets, indptr, indices, values, names] : sources) {
        require(!values || values->size() == indices.size(), "values must have one entry for each of indices");
        rows.push_back({span_of(offsets), span_of(indptr), span_of(indices), span_of(values), span_of(names)});
    }
    std::vector<SentencePlace> places(which.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = {which.data()[i], sentences.data()[i]};
    GatheredSize size{};
    {
        const nb::gil_scoped_release unlocked;
        size = gathered_size(rows, places);
    }
    Output<std::int64_t> offsets({places.size() + 1}), indptr({size.n_rows + 1});
    Output<std::int32_t> indices({size.n_entries});
    std::optional<Output<double>> values;
    if (weighted) values.emplace(Output<double>({size.n_entries}));
    {
        const nb::gil_scoped_release unlocked;
        gather_rows(rows, places, offsets.data(), indptr.data(), indices.data(), values ? values->data() : nullptr);
    }
    std::optional<nb::ndarray<nb::numpy, double>> of_values;
    if (values) of_values = values->release();
    return std::make_tuple(offsets.release(), indptr.release(), indices.release(), of_values);
}

auto number(nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> numbers, std::size_t n_names) {
    std::vector<std::int32_t> order;
    {
        const nb::gil_scoped_release unlocked;
        order = number_by_first({numbers.data(), numbers.size()}, n_names);
    }
    return copied(order);
}

auto count(Input<std::int64_t, 1> indptr, Input<std::int32_t, 1> indices, MaybeInput<double> values,
           Input<std::int32_t, 1> outputs, std::size_t n_columns, std::size_t n_outputs) {
    require(indptr.size() == outputs.size() + 1, "outputs must have one entry for each row");
    require(!values || values->size() == indices.size(), "values must have one entry for each of indices");
    ColumnCounts counts;
    {
        const nb::gil_scoped_release unlocked;
        std::int64_t last = 0;
        for (const std::int64_t end : span_of(indptr)) {
            require(end >= last && static_cast<std::size_t>(end) <= indices.size(), "indptr must rise within indices");
            last = end;
        }
        for (const std::int32_t column : span_of(indices))
            require(column >= 0 && static_cast<std::size_t>(column) < n_columns, "indices must be below n_columns");
        for (const std::int32_t output : span_of(outputs))
            require(output < 0 || static_cast<std::size_t>(output) < n_outputs, "outputs must be below n_outputs");
        const SentenceRows rows{{}, span_of(indptr), span_of(indices), span_of(values), {}};
        counts = count_outputs(rows, span_of(outputs), n_columns, n_outputs);
    }
    return std::make_tuple(copied(counts.indptr), copied(counts.outputs), copied(counts.counts));
}

}  // namespace

void register_corpus(nb::module_& module) {
    module.def("gather_rows", &gather, "sources"_a, "which"_a.noconvert(), "sentences"_a.noconvert(), "weighted"_a,
               "Sentences of several sources (offsets, indptr, indices, values or None, names of columns or None), in "
               "the order in which they are asked for: offsets, indptr, indices, values or None.");
    module.def("number_by_first", &number, "numbers"_a.noconvert(), "n_names"_a,
               "Replaces numbers by their place in the order of first occurrence, which is returned.");
    module.def("count_outputs", &count, "indptr"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none(),
               "outputs"_a.noconvert(), "n_columns"_a, "n_outputs"_a,
               "How often outputs occur with each column: indptr, outputs and how often.");
}

}  // namespace dualfield::bindings
