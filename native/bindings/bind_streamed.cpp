// Chains that are read from files block by block, and the solvers that do with a few blocks in memory.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "dualfield/solvers/streamed/streamed_dual.hpp"
#include "dualfield/streaming/corpus_blocks.hpp"
#include "dualfield/streaming/state_file.hpp"
#include "register.hpp"
#include "run_solver.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Numbers = Input<double, 1>;
using MaybeNumbers = std::optional<Numbers>;
using MaybeMatrix = std::optional<Input<double, 2>>;

class BoundBlocks {
  public:
    BoundBlocks(const ChainTopology& topology, MaybeNumbers start_limits, MaybeNumbers stop_limits, bool with_ends,
                const LinearMap& node, const LinearMap* pair, Numbers shared_mask, MaybeNumbers label_factors, double C,
                MaybeMatrix cost, double temperature, std::vector<std::string> files, Input<std::int64_t, 1> file_of,
                Input<std::int64_t, 3> ranges)
        : start_(start_limits),
          stop_(stop_limits),
          mask_(shared_mask),
          factors_(label_factors),
          cost_(cost),
          blocks_(checked(topology, with_ends, node, pair, C, temperature), std::move(files), places(file_of, ranges)) {
    }

    const CorpusBlocks& blocks() const { return blocks_; }
    const double* checked(const MaybeNumbers& w) const {
        require(!w || w->size() == blocks_.size(), "w must have an entry for each parameter");
        return data_or_null(w);
    }

  private:
    ChainFormat checked(const ChainTopology& topology, bool with_ends, const LinearMap& node, const LinearMap* pair,
                        double C, double temperature) const {
        const std::size_t n = topology.n_labels();
        for (const MaybeNumbers* limits : {&start_, &stop_, &factors_})
            require(!*limits || (*limits)->size() == n, "limits and factors must have shape (n_labels,)");
        require(node.n_outputs() == n, "the node map must have an output for each label");
        require(!pair || pair->n_outputs() == topology.n_cliques(), "the pair map must have an output for each clique");
        require(mask_.size() == topology.n_cliques() + (with_ends ? 2 * n : 0),
                "shared_mask must have shape (n_shared,)");
        require(!cost_ || (cost_->shape(0) == n && cost_->shape(1) == n), "cost must have shape (n_labels, n_labels)");
        require(temperature >= 0.0 && C > 0.0, "temperature must not be negative, and C must be positive");
        return {.topology = &topology,
                .options = {.with_edges = pair != nullptr,
                            .with_ends = with_ends,
                            .start_limits = data_or_null(start_),
                            .stop_limits = data_or_null(stop_)},
                .node = &node,
                .pair = pair,
                .shared_mask = mask_.data(),
                .label_factors = data_or_null(factors_),
                .C = C,
                .cost = data_or_null(cost_),
                .temperature = temperature};
    }
    static std::vector<BlockPlace> places(const Input<std::int64_t, 1>& file_of, const Input<std::int64_t, 3>& ranges) {
        require(ranges.shape(0) == file_of.size() && ranges.shape(1) == kBlockArrays && ranges.shape(2) == 2,
                "ranges must have shape (n_blocks, 7, 2)");
        std::vector<BlockPlace> all(file_of.size());
        const std::int64_t* numbers = ranges.data();
        for (std::size_t b = 0; b < all.size(); ++b) {
            require(file_of.data()[b] >= 0, "file_of must name files");
            all[b].file = static_cast<std::size_t>(file_of.data()[b]);
            for (ByteRange& range : all[b].arrays) {
                require(numbers[0] >= 0 && numbers[1] >= 0, "ranges must not be negative");
                range = {static_cast<std::uint64_t>(numbers[0]), static_cast<std::uint64_t>(numbers[1])};
                numbers += 2;
            }
        }
        return all;
    }

    MaybeNumbers start_, stop_;
    Numbers mask_;
    MaybeNumbers factors_;
    MaybeMatrix cost_;
    CorpusBlocks blocks_;
};

void translate(const std::exception_ptr& caught, void*) {
    try {
        std::rethrow_exception(caught);
    } catch (const StorageError& error) {
        PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.code, error.what()).ptr());
    }
}

template <auto Solver>
nb::object solve(const BoundBlocks& blocks, MaybeNumbers start, double tolerance, double most_passes,
                 std::uint64_t seed, std::size_t n_threads, double patience, double l1_ratio, std::size_t memory,
                 std::size_t fixed, const std::string& folder, const std::string& state_file, nb::object callbacks) {
    const BlockDualSettings settings{tolerance, most_passes, seed, n_threads, patience, l1_ratio};
    const StreamSettings streaming{
        .bytes = memory, .fixed = fixed, .n_threads = n_threads, .is_kept_twice = !state_file.empty()};
    const double* begin = blocks.checked(start);
    StateFile store(blocks.blocks().n_blocks(), folder, state_file);
    return run_solver(std::move(callbacks), [&](const Callbacks& native) {
        return Solver(blocks.blocks(), store, begin, settings, streaming, native);
    });
}

}  // namespace

void register_streamed(nb::module_& module) {
    nb::register_exception_translator(translate);
    nb::exception<DamagedBlock>(module, "DamagedBlock", PyExc_ValueError);
    nb::class_<BoundBlocks>(module, "CorpusBlocks", "Labelled chains in files, read block by block.")
        .def(nb::init<const ChainTopology&, MaybeNumbers, MaybeNumbers, bool, const LinearMap&, const LinearMap*,
                      Numbers, MaybeNumbers, double, MaybeMatrix, double, std::vector<std::string>,
                      Input<std::int64_t, 1>, Input<std::int64_t, 3>>(),
             "topology"_a, "start_limits"_a.noconvert().none(), "stop_limits"_a.noconvert().none(), "with_ends"_a,
             "node"_a, "pair"_a.none(), "shared_mask"_a.noconvert(), "label_factors"_a.noconvert().none(), "C"_a,
             "cost"_a.noconvert().none(), "temperature"_a, "files"_a, "file_of"_a.noconvert(), "ranges"_a.noconvert(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
        .def_prop_ro("n_blocks", [](const BoundBlocks& self) { return self.blocks().n_blocks(); })
        .def_prop_ro("size", [](const BoundBlocks& self) { return self.blocks().size(); })
        .def(
            "loss",
            [](const BoundBlocks& self, Numbers w, std::size_t n_threads) {
                const double* point = self.checked(w);
                const nb::gil_scoped_release unlocked;
                return streamed_loss(self.blocks(), point, n_threads);
            },
            "w"_a.noconvert(), "n_threads"_a, "The weighted losses of all examples at w.");
    module.def("solve_streamed_dual", &solve<solve_streamed_dual>, "blocks"_a, "start"_a.none(), "tolerance"_a,
               "most_passes"_a, "seed"_a, "n_threads"_a, "patience"_a, "l1_ratio"_a, "memory"_a, "fixed"_a, "folder"_a,
               "state_file"_a, "callbacks"_a.none(),
               "Returns what solve_block_dual returns. The state is in a file of that name, or in a nameless one.");
    module.def("solve_streamed_hinge", &solve<solve_streamed_hinge>, "blocks"_a, "start"_a.none(), "tolerance"_a,
               "most_passes"_a, "seed"_a, "n_threads"_a, "patience"_a, "l1_ratio"_a, "memory"_a, "fixed"_a, "folder"_a,
               "state_file"_a, "callbacks"_a.none(), "Returns what solve_streamed_dual returns.");
}

}  // namespace dualfield::bindings
