// Kernels between points, and kernel matrices.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "dualfield/kernels/bit_counts.hpp"
#include "dualfield/kernels/gram.hpp"
#include "dualfield/vector/routines.hpp"
#include "kernel_matrix.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

namespace {

KernelKind kind_of(const std::string& name) {
    if (name == "linear") return KernelKind::linear;
    if (name == "poly") return KernelKind::poly;
    if (name == "rbf") return KernelKind::rbf;
    if (name == "laplacian") return KernelKind::laplacian;
    if (name == "sigmoid") return KernelKind::sigmoid;
    throw std::invalid_argument("no kernel function '" + name + "'");
}

// Points are numbered in 32 bits.
std::size_t checked_points(std::size_t n) {
    require(n <= std::numeric_limits<std::int32_t>::max(), "there must be fewer than 2^31 points");
    return n;
}

// Signals are looked at between pieces of long work; an interrupt ends it as a Python exception.
void check_signals() {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

template <class S>
using Dense = Input<S, 2>;
// values, column indices, row starts, number of columns
template <class S>
using Compressed = std::tuple<Input<S, 1>, Input<std::int32_t, 1>, Input<std::int64_t, 1>, std::size_t>;
using AnyMatrix = std::variant<const BitMatrix*, Dense<float>, Dense<double>, Compressed<float>, Compressed<double>>;

template <class S>
Matrix<S> view(const Dense<S>& array) {
    return {.n = checked_points(array.shape(0)), .n_features = array.shape(1), .values = array.data()};
}
template <class S>
Matrix<S> view(const Compressed<S>& parts) {
    const auto& [values, indices, indptr, n_features] = parts;
    require(indptr.shape(0) > 0, "indptr must have an entry more than there are rows");
    return {.n = checked_points(indptr.shape(0) - 1),
            .n_features = n_features,
            .values = values.data(),
            .indptr = indptr.data(),
            .indices = indices.data()};
}

// Every entry of compressed rows must lie in a row and in a column.
template <class S>
void check_entries(const Compressed<S>& parts) {
    const auto& [values, indices, indptr, n_features] = parts;
    const std::size_t n = view(parts).n;
    require(indptr.data()[0] == 0 && indptr.data()[n] == static_cast<std::int64_t>(indices.size()) &&
                values.size() == indices.size(),
            "indptr must run from 0 to the number of entries");
    for (std::size_t i = 0; i < n; ++i) require(indptr.data()[i + 1] >= indptr.data()[i], "indptr must not decrease");
    for (std::size_t k = 0; k < indices.size(); ++k)
        require(indices.data()[k] >= 0 && static_cast<std::size_t>(indices.data()[k]) < n_features,
                "indices must be in [0, n_features)");
}
template <class S>
void check_entries(const Dense<S>&) {}

const BitMatrix& view(const BitMatrix* bits) {
    return *bits;
}

struct Shape {
    std::size_t n, n_features;
};
Shape shape_of(const AnyMatrix& matrix) {
    return std::visit([](const auto& array) { return Shape{view(array).n, view(array).n_features}; }, matrix);
}

// Two sets of points that a kernel can be evaluated between.
void require_alike(const AnyMatrix& a, const AnyMatrix& b) {
    require(shape_of(a).n_features == shape_of(b).n_features, "the two sets of points have different features");
    const auto form = [](const AnyMatrix& matrix) { return (matrix.index() + 1) / 2; };
    require(form(a) == form(b), "the two sets of points are not in the same form");
}

template <class T>
Points<T> make_points(const AnyMatrix& matrix, const KernelFunction& function, std::span<const double> shift,
                      bool panels) {
    return std::visit(
        [&]<class Array>(const Array& array) -> Points<T> {
            if constexpr (std::is_pointer_v<Array>) {
                return Points<T>(*array, function);
            } else {
                check_entries(array);
                return Points<T>(view(array), function, shift, panels);
            }
        },
        matrix);
}

std::vector<double> shift_of(const AnyMatrix& matrix, const KernelFunction& function) {
    return std::visit(
        [&]<class Array>(const Array& array) -> std::vector<double> {
            if constexpr (std::is_pointer_v<Array>) {
                return {};  // bits are exact as they are
            } else {
                return natural_shift(view(array), function);
            }
        },
        matrix);
}

template <class Array>
std::optional<BitMatrix> pack(const Array& array) {
    const nb::gil_scoped_release unlocked;
    check_entries(array);
    return BitMatrix::pack(view(array));
}

template <class T>
KernelMatrix from_points(const AnyMatrix& matrix, const KernelFunction& function, std::optional<std::size_t> budget,
                         std::size_t n_threads) {
    const nb::gil_scoped_release unlocked;
    auto points = std::make_shared<Points<T>>(make_points<T>(matrix, function, shift_of(matrix, function), true));
    std::shared_ptr<Gram<T>> gram;
    if (!budget || StoredGram<T>::bytes(points->size()) <= *budget) {
        gram = std::make_shared<StoredGram<T>>(function, *points, n_threads, check_signals);
        return {.gram = gram, .held = nullptr, .owner = {}};
    }
    std::vector<T> diagonal(points->size());
    kernel_diagonal(function, *points, diagonal.data());
    if (points->is_bits()) {
        // Where the counts fit they are kept, and the cache of rows gets the rest.
        const std::size_t counted = BitCounts::bytes(points->size(), points->n_features());
        if (counted <= *budget && points->n_features() <= BitCounts::kMostFeatures) {
            auto counts = std::make_shared<const BitCounts>(function, *points, n_threads, check_signals);
            gram = std::make_shared<CachedGram<T>>(std::move(diagonal), *budget - counted,
                                                   BitCounts::rows(std::move(counts), points->table()));
            return {.gram = gram, .held = nullptr, .owner = {}};
        }
    }
    gram = std::make_shared<CachedGram<T>>(std::move(diagonal), *budget, CachedGram<T>::from_points(function, *points));
    return {.gram = gram, .held = points, .owner = {}};
}

template <class T>
KernelMatrix streamed(const BitMatrix& bits, const KernelFunction& function) {
    auto points = std::make_shared<const Points<T>>(bits, function);
    return {.gram = std::shared_ptr<Gram<T>>(std::make_shared<StreamedGram<T>>(function, std::move(points))),
            .held = nullptr,
            .owner = {}};
}

template <class T>
KernelMatrix from_array(Dense<T> array) {
    require(array.shape(1) >= checked_points(array.shape(0)), "a kernel matrix must have a column for each row");
    return {.gram = std::shared_ptr<Gram<T>>(
                std::make_shared<BorrowedGram<T>>(array.data(), array.shape(0), array.shape(1))),
            .held = nullptr,
            .owner = nb::cast(array)};
}

// Rows from Python: rows(points) -> array (n_points, n) of float64.
KernelMatrix from_function(const nb::object& rows, const Input<double, 1>& diagonal, std::size_t budget) {
    const std::size_t n = checked_points(diagonal.shape(0));
    auto calls = std::make_shared<KernelCalls>();
    auto fill = [rows, n, calls](std::span<const std::int32_t> points, double* const* targets, ThreadTeam&) {
        const nb::gil_scoped_acquire lock;
        const auto ask = [&] {
            Output<std::int32_t> wanted({points.size()});
            std::copy(points.begin(), points.end(), wanted.data());
            return nb::object(rows(wanted.release()));
        };
        nb::object answer;
        try {
            answer = ask();
        } catch (nb::python_error& error) {
            if (!calls->is_watched || calls->is_interrupted || !error.matches(PyExc_KeyboardInterrupt)) throw;
            calls->is_interrupted = true;
            answer = ask();
        }
        const auto block = nb::cast<Input<double, 2>>(answer);
        if (block.shape(0) != points.size() || block.shape(1) != n)
            throw std::invalid_argument("the kernel function returned a block of another shape than asked for");
        for (std::size_t i = 0; i < points.size(); ++i) std::copy_n(block.data() + i * n, n, targets[i]);
    };
    std::vector<double> values(diagonal.data(), diagonal.data() + n);
    return {
        .gram = std::shared_ptr<Gram<double>>(std::make_shared<CachedGram<double>>(std::move(values), budget, fill)),
        .held = nullptr,
        .owner = rows,
        .calls = calls};
}

template <class T>
KernelMatrix from_features(const Dense<T>& features) {
    checked_points(features.shape(0));
    return {.gram = std::shared_ptr<Gram<T>>(
                std::make_shared<FactoredGram<T>>(features.data(), features.shape(0), features.shape(1))),
            .held = nullptr,
            .owner = {}};
}

// The same matrix in single precision: rounding is cheaper than computing it again.
KernelMatrix rounded(const KernelMatrix& matrix) {
    const nb::gil_scoped_release unlocked;
    Gram<double>& gram = *std::get<1>(matrix.gram);
    const std::size_t n = gram.size(), stride = padded_to_panels<float>(n);
    auto values = std::make_shared<Aligned<float>>(checked_product(n, stride));
    ThreadTeam alone(1);
    for (std::size_t i = 0; i < n; ++i) {
        const auto point = static_cast<std::int32_t>(i);
        const double* row;
        gram.rows({&point, 1}, &row, alone);
        float* target = values->data() + i * stride;
        for (std::size_t j = 0; j < n; ++j) target[j] = static_cast<float>(row[j]);
    }
    auto borrowed = std::make_shared<BorrowedGram<float>>(values->data(), n, stride);
    return {.gram = std::shared_ptr<Gram<float>>(borrowed), .held = values, .owner = {}};
}

// The support vectors of an expansion: points that have a coefficient other than zero.
struct Expansion {
    std::vector<std::int32_t> points;
    std::vector<double> coefficients;

    explicit Expansion(const Input<double, 2>& all) {
        const std::size_t width = all.shape(1);
        for (std::size_t i = 0; i < all.shape(0); ++i) {
            const double* row = all.data() + i * width;
            if (std::all_of(row, row + width, [](double c) { return c == 0.0; })) continue;
            points.push_back(static_cast<std::int32_t>(i));
            coefficients.insert(coefficients.end(), row, row + width);
        }
    }
};

// scores [n][rows] = K(x, points) coefficients, in chunks of points and of x; no kernel matrix is kept.
nb::ndarray<nb::numpy, double> kernel_scores(const AnyMatrix& points, const AnyMatrix& x,
                                             const Input<double, 2>& coefficients, const KernelFunction& function,
                                             std::size_t n_threads) {
    require_alike(points, x);
    require(coefficients.shape(0) == shape_of(points).n, "one row of coefficients for each point");
    const std::size_t n_rows = coefficients.shape(1), n_columns = shape_of(x).n;
    Output<double> out({n_columns, n_rows});
    {
        const nb::gil_scoped_release unlocked;
        const std::vector<double> shift = shift_of(points, function);
        const Points<double> rows = make_points<double>(points, function, shift, false),
                             columns = make_points<double>(x, function, shift, true);
        const Expansion used(coefficients);
        constexpr std::size_t kColumns = 192, kRows = 96;
        const auto& native = routines().kernel<double>();
        parallel_for((n_columns + kColumns - 1) / kColumns, n_threads, [&](std::size_t, std::size_t task) {
            const std::size_t first = task * kColumns, last = std::min(n_columns, first + kColumns);
            Aligned<double> block(kRows * kColumns), scores(checked_product(n_rows, kColumns), 0.0);
            const double* pointers[kRows];
            for (std::size_t i = 0; i < kRows; ++i) pointers[i] = block.data() + i * kColumns;
            for (std::size_t row = 0; row < used.points.size(); row += kRows) {
                const std::size_t n = std::min(kRows, used.points.size() - row);
                kernel_block(function, rows, std::span(used.points).subspan(row, n), columns, first, last, block.data(),
                             kColumns);
                // Whole panels, so that a column's sum does not depend on which others it is computed with.
                native.expand(pointers, n, used.coefficients.data() + row * n_rows, n_rows, n_rows, scores.data(),
                              kColumns, 0, padded_to_panels<double>(last - first));
            }
            for (std::size_t j = first; j < last; ++j)
                for (std::size_t r = 0; r < n_rows; ++r) out.data()[j * n_rows + r] = scores[r * kColumns + j - first];
        });
    }
    return out.release();
}

nb::ndarray<nb::numpy, double> kernel_values(const AnyMatrix& x, const AnyMatrix& y, const KernelFunction& function,
                                             std::size_t n_threads) {
    require_alike(x, y);
    const std::size_t n = shape_of(x).n, m = shape_of(y).n;
    Output<double> out({n, m});
    {
        const nb::gil_scoped_release unlocked;
        const std::vector<double> shift = shift_of(y, function);
        const Points<double> rows = make_points<double>(x, function, shift, false),
                             columns = make_points<double>(y, function, shift, true);
        constexpr std::size_t kRows = 24;
        parallel_for((n + kRows - 1) / kRows, n_threads, [&](std::size_t, std::size_t task) {
            const std::size_t width = padded_to_panels<double>(m), first = task * kRows,
                              here = std::min(kRows, n - first);
            Aligned<double> block(checked_product(kRows, width));
            std::int32_t list[kRows];
            std::iota(list, list + here, static_cast<std::int32_t>(first));
            kernel_block(function, rows, std::span<const std::int32_t>(list, here), columns, 0, m, block.data(), width);
            for (std::size_t i = 0; i < here; ++i)
                std::copy_n(block.data() + i * width, m, out.data() + (first + i) * m);
        });
    }
    return out.release();
}

}  // namespace

void register_kernel_matrices(nb::module_& module) {
    nb::class_<KernelFunction>(module, "KernelFunction", "A kernel function with its parameters.")
        .def(
            "__init__",
            [](KernelFunction* self, const std::string& name, double gamma, double coef0, double degree) {
                new (self) KernelFunction{kind_of(name), gamma, coef0, degree};
            },
            "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
    nb::class_<BitMatrix>(module, "BitMatrix", "Points whose features are all 0 or 1, one bit each.")
        .def_static("pack", &pack<Dense<std::uint8_t>>, "points"_a.noconvert())
        .def_static("pack", &pack<Dense<float>>, "points"_a.noconvert())
        .def_static("pack", &pack<Dense<double>>, "points"_a.noconvert())
        .def_static("pack", &pack<Compressed<float>>, "points"_a.noconvert())
        .def_static("pack", &pack<Compressed<double>>, "points"_a.noconvert(), "None if a value is neither 0 nor 1.");
    module.def("kernel_scores", &kernel_scores, "points"_a, "x"_a, "coefficients"_a, "function"_a, "n_threads"_a,
               "K(x, points) @ coefficients without keeping K.");
    module.def("kernel_values", &kernel_values, "x"_a, "y"_a, "function"_a, "n_threads"_a, "The matrix K(x, y).");

    nb::class_<KernelMatrix>(module, "KernelMatrix",
                             "The kernel matrix of training points: stored, borrowed or cached.")
        .def_static(
            "from_points",
            [](const AnyMatrix& points, const KernelFunction& function, bool single, std::optional<std::size_t> budget,
               std::size_t n_threads) {
                return single ? from_points<float>(points, function, budget, n_threads)
                              : from_points<double>(points, function, budget, n_threads);
            },
            "points"_a, "function"_a, "single"_a, "budget"_a.none(), "n_threads"_a)
        .def_static(
            "streamed",
            [](const BitMatrix& points, const KernelFunction& function, bool single) {
                return single ? streamed<float>(points, function) : streamed<double>(points, function);
            },
            "points"_a, "function"_a, "single"_a, "Values are computed where they are used.")
        .def_static("from_array", &from_array<float>, "array"_a.noconvert())
        .def_static("from_array", &from_array<double>, "array"_a.noconvert())
        .def_static("from_function", &from_function, "rows"_a, "diagonal"_a, "budget"_a)
        .def_static("from_features", &from_features<float>, "features"_a.noconvert())
        .def_static("from_features", &from_features<double>, "features"_a.noconvert())
        .def_prop_ro(
            "diagonal",
            [](const KernelMatrix& self) {
                return std::visit(
                    [](const auto& gram) {
                        Output<double> out({gram->size()});
                        std::copy(gram->diagonal().begin(), gram->diagonal().end(), out.data());
                        return out.release();
                    },
                    self.gram);
            },
            nb::rv_policy::move)
        .def_prop_ro(
            "single",
            [](const KernelMatrix& self) { return std::holds_alternative<std::shared_ptr<Gram<float>>>(self.gram); })
        .def("rounded", &rounded, "A copy of a stored matrix in single precision.")
        .def(
            "product",
            [](const KernelMatrix& self, const Input<double, 2>& coefficients, std::size_t n_threads) {
                const std::size_t n = coefficients.shape(0), rows = coefficients.shape(1);
                require(n == std::visit([](const auto& gram) { return gram->size(); }, self.gram),
                        "coefficients must have a row for each point");
                Output<double> out({n, rows});
                {
                    const nb::gil_scoped_release unlocked;
                    ThreadTeam team(n_threads);
                    std::visit(
                        [&]<class T>(const std::shared_ptr<Gram<T>>& gram) {
                            const std::size_t stride = padded_to_panels<T>(n);
                            std::vector<T> given(coefficients.data(), coefficients.data() + n * rows);
                            Aligned<T> scores(checked_product(rows, stride));
                            const Poll before = gram->poll;
                            gram->poll = check_signals;
                            gram->product(given.data(), rows, scores.data(), stride, team);
                            gram->poll = before;
                            for (std::size_t i = 0; i < n; ++i)
                                for (std::size_t r = 0; r < rows; ++r)
                                    out.data()[i * rows + r] = static_cast<double>(scores[r * stride + i]);
                        },
                        self.gram);
                }
                return out.release();
            },
            "coefficients"_a, "n_threads"_a, "K @ coefficients.");
}

}  // namespace dualfield::bindings
