// The flows of the chains of a block as bytes.
//
// What the chains gained last, [n] doubles; then for each node how many edges lead into it, or none where all of its
// mass is on the truth, 4 bytes; then the edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../dual/chain_flow.hpp"

namespace dualfield {

class BlockFlows {
  public:
    // No bytes: all flows are the truth.
    BlockFlows(const Problem& problem, const std::vector<std::byte>& bytes)
        : gain(problem.n_examples(), 0.0), flow(problem), problem_(problem) {
        if (bytes.empty())
            flow.begin_at_truth();
        else
            read(bytes);
    }

    std::vector<std::byte> bytes() const {
        const std::size_t n = gain.size(), n_nodes = problem_.n_nodes(), begin = n * sizeof(double);
        std::vector<std::uint32_t> counts(n_nodes, 0);
        std::size_t n_edges = 0;
        for_rows([&](std::size_t row, bool is_truth) {
            counts[row] = is_truth ? 0 : static_cast<std::uint32_t>(flow.edges(row).size());
            n_edges += counts[row];
        });
        std::vector<std::byte> out(begin + n_nodes * sizeof(std::uint32_t) + n_edges * sizeof(FlowEdge));
        std::memcpy(out.data(), gain.data(), begin);
        std::memcpy(out.data() + begin, counts.data(), n_nodes * sizeof(std::uint32_t));
        std::byte* to = out.data() + begin + n_nodes * sizeof(std::uint32_t);
        for_rows([&](std::size_t row, bool) {
            std::memcpy(to, flow.edges(row).data(), counts[row] * sizeof(FlowEdge));
            to += counts[row] * sizeof(FlowEdge);
        });
        return out;
    }

    std::vector<double> gain;  // [n]: of the last visit
    ChainFlow flow;

  private:
    void read(const std::vector<std::byte>& bytes) {
        const std::size_t n = gain.size(), n_nodes = problem_.n_nodes();
        const std::size_t begin = n * sizeof(double), edges_begin = begin + n_nodes * sizeof(std::uint32_t);
        require(bytes.size() >= edges_begin);
        std::memcpy(gain.data(), bytes.data(), begin);
        std::vector<std::uint32_t> counts(n_nodes);
        std::memcpy(counts.data(), bytes.data() + begin, n_nodes * sizeof(std::uint32_t));
        std::size_t at = edges_begin;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t) {
                const std::size_t row = problem_.first(i) + t;
                if (counts[row] == 0) flow.add(row, flow.truth_before(i, t), flow.truth(i, t), 1.0);
                for (std::uint32_t e = 0; e < counts[row]; ++e, at += sizeof(FlowEdge)) {
                    FlowEdge edge;
                    require(bytes.size() - at >= sizeof(FlowEdge));
                    std::memcpy(&edge, bytes.data() + at, sizeof(FlowEdge));
                    require(edge.from < problem_.structure->n_labels() && edge.to < problem_.structure->n_labels());
                    flow.add(row, edge.from, edge.to, edge.mass);
                }
            }
        require(at == bytes.size());
    }

    static void require(bool holds) {
        if (!holds) throw StateError("the flows of a block do not fit its chains");
    }
    template <class Use>
    void for_rows(const Use& use) const {
        for (std::size_t i = 0; i < problem_.n_examples(); ++i)
            for (std::size_t t = 0; t < problem_.length(i); ++t) {
                const auto edges = flow.edges(problem_.first(i) + t);
                const bool is_truth = edges.size() == 1 && edges[0].from == flow.truth_before(i, t) &&
                                      edges[0].to == flow.truth(i, t) && edges[0].mass == 1.0;
                use(problem_.first(i) + t, is_truth);
            }
    }

    const Problem& problem_;
};

}  // namespace dualfield
