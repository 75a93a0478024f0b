// The queries, bound once for every structure, and the makers of oracles.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>

#include "arrays.hpp"
#include "dualfield/structures/chain.hpp"
#include "dualfield/structures/single.hpp"
#include "register.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Offsets = Input<std::int64_t, 1>;
using Labels = Input<std::int32_t, 1>;
using Matrix = Input<double, 2>;
using MaybeMatrix = std::optional<Matrix>;
using MaybeVector = std::optional<Input<double, 1>>;

// An oracle with the arrays that it reads; they stay alive as long as it does.
class BoundOracle {
  public:
    virtual ~BoundOracle() = default;
    virtual Oracle& oracle() = 0;

    // Asks without the interpreter lock, then raises for the first example that has no answer.
    template <class Query>
    void ask(Query query) {
        {
            const nb::gil_scoped_release unlocked;
            query(oracle());
        }
        const auto& statuses = oracle().statuses();
        for (std::size_t i = 0; i < statuses.size(); ++i) {
            if (statuses[i] == Status::bad_number)
                throw std::invalid_argument("The scores of example " + std::to_string(i) +
                                            " must be finite, or -inf for what is forbidden, also divided by the "
                                            "temperature and added up. Got NaN or +inf instead.");
            if (statuses[i] == Status::impossible)
                throw std::invalid_argument(
                    "Example " + std::to_string(i) +
                    " has no allowed labelling: its -inf scores and the forbidden transitions leave none.");
        }
    }
};

class BoundSingle final : public BoundOracle {
  public:
    BoundSingle(Matrix node, MaybeMatrix cost, double inverse_temperature, std::size_t n_threads)
        : node_(node),
          cost_(cost),
          oracle_({.n_rows = node.shape(0),
                   .n_labels = node.shape(1),
                   .node = node.data(),
                   .cost = data_or_null(cost),
                   .inverse_temperature = inverse_temperature},
                  n_threads) {
        require(node.shape(1) > 0, "node must have at least one column");
        require(!cost || (cost->shape(0) == node.shape(0) && cost->shape(1) == node.shape(1)),
                "cost must have the shape of node");
        require(inverse_temperature > 0.0, "inverse_temperature must be positive");
    }
    Oracle& oracle() override { return oracle_; }

  private:
    Matrix node_;
    MaybeMatrix cost_;
    SingleOracle oracle_;
};

// Number of edges before each example, [n + 1]; refuses offsets that do not rise from 0.
std::vector<std::int64_t> count_edges(const Offsets& offsets) {
    require(offsets.size() > 0 && offsets.data()[0] == 0, "offsets must begin with 0");
    std::vector<std::int64_t> edges{0};
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        const std::int64_t length = offsets.data()[i] - offsets.data()[i - 1];
        require(length >= 0, "offsets must not decrease");
        edges.push_back(edges.back() + std::max<std::int64_t>(length - 1, 0));
    }
    return edges;
}

class BoundChain final : public BoundOracle {
  public:
    BoundChain(const ChainTopology& topology, Offsets offsets, Matrix node, MaybeVector transition,
               MaybeMatrix edge_transition, MaybeVector start, MaybeVector stop, MaybeMatrix cost,
               double inverse_temperature, std::size_t n_threads)
        : offsets_(offsets),
          node_(node),
          transition_(transition),
          edge_transition_(edge_transition),
          start_(start),
          stop_(stop),
          cost_(cost),
          edge_offsets_(count_edges(offsets)),
          scores_{.offsets = {offsets_.data(), offsets_.size()},
                  .edge_offsets = edge_offsets_,
                  .node = node_.data(),
                  .cost = data_or_null(cost_),
                  .start = data_or_null(start_),
                  .stop = data_or_null(stop_),
                  .transition = edge_transition_ ? edge_transition_->data() : data_or_null(transition_),
                  .transition_per_edge = edge_transition_.has_value(),
                  .inverse_temperature = inverse_temperature},
          oracle_(topology, scores_, n_threads) {
        const std::size_t n_labels = topology.n_labels(), n_nodes = scores_.n_nodes();
        require(node.shape(0) == n_nodes && node.shape(1) == n_labels, "node must have shape (offsets[-1], n_labels)");
        require(!cost || (cost->shape(0) == n_nodes && cost->shape(1) == n_labels), "cost must have the shape of node");
        require(!start || start->size() == n_labels, "start must have shape (n_labels,)");
        require(!stop || stop->size() == n_labels, "stop must have shape (n_labels,)");
        require(!transition || transition->size() == topology.n_cliques(), "transition must have shape (n_cliques,)");
        require(!edge_transition || (edge_transition->shape(0) == oracle_.n_edges() &&
                                     edge_transition->shape(1) == topology.n_cliques()),
                "edge_transition must have shape (n_edges, n_cliques)");
        require(!(transition && edge_transition), "transition and edge_transition exclude each other");
        require(inverse_temperature > 0.0, "inverse_temperature must be positive");
    }
    Oracle& oracle() override { return oracle_; }

  private:
    Offsets offsets_;
    Matrix node_;
    MaybeVector transition_;
    MaybeMatrix edge_transition_;
    MaybeVector start_, stop_;
    MaybeMatrix cost_;
    std::vector<std::int64_t> edge_offsets_;
    ChainScores scores_;
    ChainOracle oracle_;
};

const std::int32_t* checked_labels(const Labels& labels, std::size_t n_nodes, std::size_t n_labels) {
    require(labels.size() == n_nodes, "labels must have one entry for each node");
    for (std::size_t i = 0; i < labels.size(); ++i)
        require(labels.data()[i] >= 0 && static_cast<std::size_t>(labels.data()[i]) < n_labels,
                "labels must be codes in [0, n_labels)");
    return labels.data();
}

CliqueOutput clique_output(const std::string& cliques) {
    if (cliques == "each") return CliqueOutput::each;
    if (cliques == "sum") return CliqueOutput::sum;
    require(cliques == "none", "cliques must be 'none', 'each' or 'sum'");
    return CliqueOutput::none;
}

auto marginals(BoundOracle& self, const std::string& cliques) {
    const CliqueOutput which = clique_output(cliques);
    const Oracle& oracle = self.oracle();
    const std::size_t n_rows = which == CliqueOutput::each  ? oracle.n_edges()
                               : which == CliqueOutput::sum ? oracle.n_examples()
                                                            : 0;
    Output<double> nodes({oracle.n_nodes(), oracle.n_labels()}), log_partition({oracle.n_examples()});
    Output<double> clique_rows({n_rows, oracle.n_cliques()});
    self.ask([&](Oracle& asked) { asked.marginals(nodes.data(), which, clique_rows.data(), log_partition.data()); });
    return std::make_tuple(nodes.release(), clique_rows.release(), log_partition.release());
}

auto k_best(BoundOracle& self, std::size_t k) {
    Output<std::int32_t> labels({k, self.oracle().n_nodes()});
    Output<double> scores({self.oracle().n_examples(), k});
    self.ask([&](Oracle& asked) { asked.k_best(k, labels.data(), scores.data()); });
    return std::make_pair(labels.release(), scores.release());
}

void register_queries(nb::module_& module) {
    // Queries with one number for each example.
    const auto per_example = [](void (Oracle::*query)(double*)) {
        return [query](BoundOracle& self) {
            Output<double> out({self.oracle().n_examples()});
            self.ask([&](Oracle& asked) { (asked.*query)(out.data()); });
            return out.release();
        };
    };
    nb::class_<BoundOracle>(module, "Oracle", "The answers to every question about one batch of scores.")
        .def("maximum", per_example(&Oracle::maximum))
        .def("log_partition", per_example(&Oracle::log_partition))
        .def("entropy", per_example(&Oracle::entropy))
        .def("marginals", &marginals, "cliques"_a)
        .def("k_best", &k_best, "k"_a)
        .def("argmax",
             [](BoundOracle& self) {
                 Output<std::int32_t> labels({self.oracle().n_nodes()});
                 self.ask([&](Oracle& asked) { asked.argmax(labels.data()); });
                 return labels.release();
             })
        .def("max_marginals",
             [](BoundOracle& self) {
                 Output<double> nodes({self.oracle().n_nodes(), self.oracle().n_labels()});
                 self.ask([&](Oracle& asked) { asked.max_marginals(nodes.data()); });
                 return nodes.release();
             })
        .def(
            "sample",
            [](BoundOracle& self, std::size_t n_samples, std::uint64_t seed) {
                Output<std::int32_t> labels({n_samples, self.oracle().n_nodes()});
                self.ask([&](Oracle& asked) { asked.sample(n_samples, seed, labels.data()); });
                return labels.release();
            },
            "n_samples"_a, "seed"_a)
        .def(
            "score",
            [](BoundOracle& self, Labels labels) {
                const std::int32_t* codes = checked_labels(labels, self.oracle().n_nodes(), self.oracle().n_labels());
                Output<double> out({self.oracle().n_examples()});
                self.ask([&](Oracle& asked) { asked.score(codes, out.data()); });
                return out.release();
            },
            "labels"_a.noconvert());
    nb::class_<BoundSingle, BoundOracle>(module, "SingleOracle", "Single nodes.")
        .def(nb::init<Matrix, MaybeMatrix, double, std::size_t>(), "node"_a.noconvert(), "cost"_a.noconvert().none(),
             "inverse_temperature"_a, "n_threads"_a);
    nb::class_<BoundChain, BoundOracle>(module, "ChainOracle", "Chains.")
        .def(nb::init<const ChainTopology&, Offsets, Matrix, MaybeVector, MaybeMatrix, MaybeVector, MaybeVector,
                      MaybeMatrix, double, std::size_t>(),
             "topology"_a, "offsets"_a.noconvert(), "node"_a.noconvert(), "transition"_a.noconvert().none(),
             "edge_transition"_a.noconvert().none(), "start"_a.noconvert().none(), "stop"_a.noconvert().none(),
             "cost"_a.noconvert().none(), "inverse_temperature"_a, "n_threads"_a, nb::keep_alive<1, 2>());
}

}  // namespace

void register_oracles(nb::module_& module) {
    nb::class_<ChainTopology>(module, "ChainTopology", "State graph of a chain of any order.")
        .def(
            "__init__",
            [](ChainTopology* self, std::size_t n_labels, Input<std::int32_t, 2> cliques, Input<bool, 1> allowed) {
                require(cliques.shape(1) >= 2, "cliques must have shape (n, order + 1)");
                new (self) ChainTopology(n_labels, cliques.shape(1) - 1, {cliques.data(), cliques.size()},
                                         {reinterpret_cast<const std::uint8_t*>(allowed.data()), allowed.size()});
            },
            "n_labels"_a, "cliques"_a.noconvert(), "allowed"_a.noconvert())
        .def_prop_ro("width", &ChainTopology::width, "Padded length of a row over states.")
        .def(
            "clique_indices",
            [](const ChainTopology& self, Offsets offsets, Labels labels) {
                Output<std::int64_t> out({static_cast<std::size_t>(count_edges(offsets).back())});
                const auto n_nodes = static_cast<std::size_t>(offsets.data()[offsets.size() - 1]);
                clique_indices(self, {offsets.data(), offsets.size()}, checked_labels(labels, n_nodes, self.n_labels()),
                               out.data());
                return out.release();
            },
            "offsets"_a.noconvert(), "labels"_a.noconvert(),
            "Clique that ends at each node but the first; -1: not listed.");
    register_queries(module);
}

}  // namespace dualfield::bindings
