// Structures, and the questions about them, bound once for all.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>

#include "dualfield/structures/chains/chain.hpp"
#include "dualfield/structures/single.hpp"
#include "dualfield/structures/slope.hpp"
#include "register.hpp"
#include "structure_arrays.hpp"

using namespace nanobind::literals;

namespace dualfield::bindings {
namespace {

using Matrix = Input<double, 2>;
using MaybeMatrix = std::optional<Matrix>;
using MaybeVector = std::optional<Input<double, 1>>;

class BoundSingle final : public BoundStructure {
  public:
    BoundSingle(std::size_t n_labels, std::size_t n_examples) : structure_(n_labels, n_examples) {
        require(n_labels > 0, "n_labels must be positive");
    }
    const Structure& structure() const override { return structure_; }

  private:
    SingleStructure structure_;
};

class BoundChain final : public BoundStructure {
  public:
    BoundChain(const ChainTopology& topology, Offsets offsets, bool with_edges, bool with_ends,
               MaybeVector start_limits, MaybeVector stop_limits)
        : offsets_(checked_offsets(offsets)),
          start_(start_limits),
          stop_(stop_limits),
          structure_(topology, {offsets_.data(), offsets_.size()},
                     {with_edges, with_ends, data_or_null(start_), data_or_null(stop_)}) {
        require(!start_ || start_->size() == topology.n_labels(), "start_limits must have shape (n_labels,)");
        require(!stop_ || stop_->size() == topology.n_labels(), "stop_limits must have shape (n_labels,)");
    }
    const Structure& structure() const override { return structure_; }

  private:
    Offsets offsets_;
    MaybeVector start_, stop_;
    ChainStructure structure_;
};

// A structure with scores, which answers the questions.
class Oracle {
  public:
    Oracle(const BoundStructure& bound, std::vector<MaybeMatrix> own, MaybeVector shared, double inverse_temperature,
           std::size_t n_threads)
        : bound_(bound), own_(std::move(own)), shared_(shared), n_threads_(n_threads) {
        const PartLayout& parts = structure().parts();
        require(own_.size() == parts.tables.size() && own_[0], "own must have an array or None for each table");
        for (std::size_t g = 0; g < own_.size(); ++g) {
            if (!own_[g]) continue;
            const auto n_rows = static_cast<std::size_t>(parts.tables[g].offsets.back());
            require(own_[g]->shape(0) == n_rows && own_[g]->shape(1) == parts.tables[g].width,
                    "own scores must have the shape of their table");
            view_.own[g] = own_[g]->data();
        }
        require(!shared_ || shared_->size() == parts.n_shared, "shared must have shape (n_shared,)");
        require(inverse_temperature > 0.0, "inverse_temperature must be positive");
        view_.shared = data_or_null(shared_);
        view_.inverse_temperature = inverse_temperature;
        statuses_.assign(structure().n_examples(), Status::ok);
    }

    const Structure& structure() const { return bound_.structure(); }
    const BoundStructure& bound() const { return bound_; }
    const ScoreView& view() const { return view_; }
    std::size_t n_examples() const { return structure().n_examples(); }
    std::size_t n_rows(std::size_t table) const {
        return static_cast<std::size_t>(structure().parts().tables[table].offsets.back());
    }
    std::size_t width(std::size_t table) const { return structure().parts().tables[table].width; }

    // Calls query(examples, scores, n_threads, statuses) without the interpreter lock, then raises for the first
    // example that has no answer.
    template <class Query>
    void ask(Query query) {
        {
            const nb::gil_scoped_release unlocked;
            query(Examples{0, n_examples()}, view_, n_threads_, statuses_.data());
        }
        for (std::size_t i = 0; i < statuses_.size(); ++i) {
            if (statuses_[i] == Status::bad_number)
                throw std::invalid_argument("The scores of example " + std::to_string(i) +
                                            " must be finite, or -inf for what is forbidden, also divided by the "
                                            "temperature and added up. Got NaN or +inf instead.");
            if (statuses_[i] == Status::impossible) {
                throw std::invalid_argument("Example " + std::to_string(i) +
                                            " has no allowed labelling: " + no_labelling(i));
            }
        }
    }
    // Why an example has no labelling.
    std::string no_labelling(std::size_t example) const {
        const std::string reason = structure().no_labelling(example);
        return reason.empty() ? "its -inf scores and the forbidden transitions leave none." : reason;
    }
    // Which examples have a labelling at all.
    auto possible() {
        Output<bool> out({n_examples()});
        std::vector<double> unused(n_examples());
        {
            const nb::gil_scoped_release unlocked;
            structure().maximum({0, n_examples()}, view_, n_threads_, unused.data(), statuses_.data());
        }
        for (std::size_t i = 0; i < n_examples(); ++i) out.data()[i] = statuses_[i] != Status::impossible;
        return out.release();
    }

  private:
    const BoundStructure& bound_;
    std::vector<MaybeMatrix> own_;
    MaybeVector shared_;
    std::size_t n_threads_;
    ScoreView view_;
    std::vector<Status> statuses_;
};

// A question with one number for each example.
template <class Question>
auto per_example(Oracle& self, Question question) {
    Output<double> out({self.n_examples()});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        (self.structure().*question)(examples, scores, n_threads, out.data(), statuses);
    });
    return out.release();
}

// Marginals of each table, of the shared parts if they are wanted, and the log-partition. Edges are the second table.
auto marginals(Oracle& self, bool with_shared, bool with_edges) {
    const PartLayout& parts = self.structure().parts();
    require(!with_edges || parts.tables.size() > 1, "the structure has no table of edges");
    Output<double> nodes({self.n_rows(0), self.width(0)}), values({self.n_examples()});
    Output<double> edges({with_edges ? self.n_rows(1) : 0, with_edges ? self.width(1) : 0});
    Output<double> shared({with_shared ? self.n_examples() : 0, parts.n_shared});
    const PartSums sums{{nodes.data(), with_edges ? edges.data() : nullptr}, with_shared ? shared.data() : nullptr};
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().marginals(examples, scores, n_threads, sums, values.data(), statuses);
    });
    return std::make_tuple(nodes.release(), edges.release(), shared.release(), values.release());
}

// The change of the marginals of each table and of the shared parts along a direction, and that of the log-partition.
auto directional(Oracle& self, const Oracle& direction) {
    const PartLayout& parts = self.structure().parts();
    const bool has_edges = parts.tables.size() > 1;
    require(&direction.structure() == &self.structure(), "the direction must be one of scores of the same structure");
    Output<double> nodes({self.n_rows(0), self.width(0)}), values({self.n_examples()});
    Output<double> edges({has_edges ? self.n_rows(1) : 0, has_edges ? self.width(1) : 0});
    Output<double> shared({self.n_examples(), parts.n_shared});
    const PartSums change{{nodes.data(), has_edges ? edges.data() : nullptr}, shared.data()};
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().directional(examples, scores, direction.view(), n_threads, change, values.data(), statuses);
    });
    return std::make_tuple(nodes.release(), edges.release(), shared.release(), values.release());
}

// The covariances of all parts of an example.
auto covariance(Oracle& self, std::size_t example) {
    const PartLayout& parts = self.structure().parts();
    require(example < self.n_examples(), "there is no such example");
    const std::size_t n = parts.n_own(example) + parts.n_shared;
    Output<double> found({n, n});
    std::fill_n(found.data(), n * n, 0.0);
    std::unique_ptr<Slope> slope = self.structure().slope();
    require(slope != nullptr, "covariance is not answered for this structure");
    const Status status = slope->begin(example, self.structure().view_of(example, 0, self.view()));
    if (status == Status::ok) slope->add_covariance(parts, example, 1.0, found.data());
    return std::make_tuple(found.release(), status == Status::ok);
}

// A best point of each table and of the shared parts, the highest scores or bounds above them, and by how much the
// points score less.
auto best_point(Oracle& self) {
    const PartLayout& parts = self.structure().parts();
    const bool has_edges = parts.tables.size() > 1;
    Output<double> nodes({self.n_rows(0), self.width(0)}), values({self.n_examples()}), slack({self.n_examples()});
    Output<double> edges({has_edges ? self.n_rows(1) : 0, has_edges ? self.width(1) : 0});
    Output<double> shared({self.n_examples(), parts.n_shared});
    const PartSums sums{{nodes.data(), has_edges ? edges.data() : nullptr}, shared.data(), slack.data()};
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().best_point(examples, scores, n_threads, sums, values.data(), statuses);
    });
    return std::make_tuple(nodes.release(), edges.release(), shared.release(), values.release(), slack.release());
}

auto k_best(Oracle& self, std::size_t k) {
    Output<std::int32_t> labels({k, self.bound().n_places()});
    Output<double> found({self.n_examples(), k});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().k_best(examples, scores, n_threads, k, labels.data(), found.data(), statuses);
    });
    return std::make_pair(labels.release(), found.release());
}

auto argmax(Oracle& self) {
    Output<std::int32_t> labels({self.bound().n_places()});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().argmax(examples, scores, n_threads, labels.data(), statuses);
    });
    return labels.release();
}

// The best labellings that were found, and bounds on the scores of all labellings.
auto bounded_argmax(Oracle& self) {
    Output<std::int32_t> labels({self.bound().n_places()});
    Output<double> bounds({self.n_examples()});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().bounded_argmax(examples, scores, n_threads, labels.data(), bounds.data(), statuses);
    });
    return std::make_pair(labels.release(), bounds.release());
}

auto max_marginals(Oracle& self) {
    Output<double> nodes({self.n_rows(0), self.width(0)});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().max_marginals(examples, scores, n_threads, nodes.data(), statuses);
    });
    return nodes.release();
}

auto sample(Oracle& self, std::size_t n_samples, std::uint64_t seed) {
    Output<std::int32_t> labels({n_samples, self.bound().n_places()});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().sample(examples, scores, n_threads, n_samples, seed, labels.data(), statuses);
    });
    return labels.release();
}

auto score(Oracle& self, Codes labels) {
    const std::int32_t* codes = self.bound().checked(labels);
    Output<double> out({self.n_examples()});
    self.ask([&](Examples examples, const ScoreView& scores, std::size_t n_threads, Status* statuses) {
        self.structure().score(examples, scores, n_threads, codes, out.data(), statuses);
    });
    return out.release();
}

// The parts of labellings: of each row of the second table, that of edges, its part or -1, and all shared parts, one
// example after another, with where each begins.
auto list_parts(const BoundStructure& self, Codes labels) {
    const std::int32_t* codes = self.checked(labels);
    const Structure& structure = self.structure();
    const bool has_edges = structure.parts().tables.size() > 1;
    std::vector<std::int32_t> edges, shared;
    std::vector<std::int64_t> begins{0};
    PartList parts;
    for (std::size_t i = 0; i < structure.n_examples(); ++i) {
        structure.list_parts(i, codes + structure.first(i), parts);
        if (has_edges) edges.insert(edges.end(), parts.own[1].begin(), parts.own[1].end());
        shared.insert(shared.end(), parts.shared.begin(), parts.shared.end());
        begins.push_back(static_cast<std::int64_t>(shared.size()));
    }
    const auto copied = [](const auto& values) {
        Output<typename std::decay_t<decltype(values)>::value_type> out({values.size()});
        std::copy(values.begin(), values.end(), out.data());
        return out.release();
    };
    return std::make_tuple(copied(edges), copied(shared), copied(begins));
}

void register_questions(nb::module_& module) {
    nb::class_<BoundStructure>(module, "Structure", "Examples as sets of labellings, with the layout of their parts.")
        .def_prop_ro("n_examples", [](const BoundStructure& self) { return self.structure().n_examples(); })
        .def_prop_ro("n_shared", [](const BoundStructure& self) { return self.structure().parts().n_shared; })
        .def_prop_ro("has_slopes", [](const BoundStructure& self) { return self.structure().slope() != nullptr; })
        .def("list_parts", &list_parts, "labels"_a.noconvert(),
             "Parts of edges, shared parts, and where those of each example begin.");
    nb::class_<Oracle>(module, "Oracle", "The answers to every question about one batch of scores.")
        .def(nb::init<const BoundStructure&, std::vector<MaybeMatrix>, MaybeVector, double, std::size_t>(),
             "structure"_a, "own"_a, "shared"_a.noconvert().none(), "inverse_temperature"_a, "n_threads"_a,
             nb::keep_alive<1, 2>())
        .def("maximum", [](Oracle& self) { return per_example(self, &Structure::maximum); })
        .def("log_partition", [](Oracle& self) { return per_example(self, &Structure::log_partition); })
        .def("entropy", [](Oracle& self) { return per_example(self, &Structure::entropy); })
        .def("marginals", &marginals, "with_shared"_a, "with_edges"_a)
        .def("covariance", &covariance, "example"_a,
             "The covariances of all parts of an example, and whether it has any.")
        .def("directional", &directional, "direction"_a,
             "Changes of nodes, edges and shared parts along the scores of another oracle, and of the log-partition.")
        .def("best_point", &best_point, "Nodes, edges, shared parts, highest scores or bounds of them, and slacks.")
        .def("k_best", &k_best, "k"_a)
        .def("argmax", &argmax)
        .def("bounded_argmax", &bounded_argmax, "Best labels, and bounds on the scores of all labellings.")
        .def("max_marginals", &max_marginals)
        .def("sample", &sample, "n_samples"_a, "seed"_a)
        .def("score", &score, "labels"_a.noconvert())
        .def("possible", &Oracle::possible, "Which examples have an allowed labelling.")
        .def(
            "no_labelling",
            [](const Oracle& self, std::size_t example) {
                if (example >= self.n_examples()) throw nb::index_error("example");
                return self.no_labelling(example);
            },
            "example"_a, "Why an example has no allowed labelling, if possible() says so.");
    nb::class_<BoundSingle, BoundStructure>(module, "SingleStructure", "Single nodes.")
        .def(nb::init<std::size_t, std::size_t>(), "n_labels"_a, "n_examples"_a);
    nb::class_<BoundChain, BoundStructure>(module, "ChainStructure", "Chains.")
        .def(nb::init<const ChainTopology&, Offsets, bool, bool, MaybeVector, MaybeVector>(), "topology"_a,
             "offsets"_a.noconvert(), "with_edges"_a, "with_ends"_a, "start_limits"_a.noconvert().none(),
             "stop_limits"_a.noconvert().none(), nb::keep_alive<1, 2>());
}

// Number of edges of all examples; refuses offsets that do not rise from 0.
std::size_t count_edges(const Offsets& offsets) {
    checked_offsets(offsets);
    std::int64_t edges = 0;
    for (std::size_t i = 1; i < offsets.size(); ++i)
        edges += std::max<std::int64_t>(offsets.data()[i] - offsets.data()[i - 1] - 1, 0);
    return static_cast<std::size_t>(edges);
}

}  // namespace

void register_structures(nb::module_& module) {
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
            [](const ChainTopology& self, Offsets offsets, Codes labels) {
                Output<std::int64_t> out({count_edges(offsets)});
                require(labels.size() == static_cast<std::size_t>(offsets.data()[offsets.size() - 1]),
                        "labels must have one entry for each node");
                for (std::size_t j = 0; j < labels.size(); ++j)
                    require(labels.data()[j] >= 0 && static_cast<std::size_t>(labels.data()[j]) < self.n_labels(),
                            "labels must be codes in [0, n_labels)");
                clique_indices(self, {offsets.data(), offsets.size()}, labels.data(), out.data());
                return out.release();
            },
            "offsets"_a.noconvert(), "labels"_a.noconvert(),
            "Clique that ends at each node but the first; -1: not listed.");
    register_questions(module);
}

}  // namespace dualfield::bindings
