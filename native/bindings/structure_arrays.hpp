// Structures as Python passes them, with the arrays that they view.
#pragma once

#include <memory>
#include <utility>

#include "arrays.hpp"
#include "dualfield/structures/structure.hpp"

namespace dualfield::bindings {

using Offsets = Input<std::int64_t, 1>;
using Codes = Input<std::int32_t, 1>;

class BoundStructure {
  public:
    virtual ~BoundStructure() = default;
    virtual const Structure& structure() const = 0;

    std::size_t n_places() const { return static_cast<std::size_t>(structure().label_offsets().back()); }
    const std::int32_t* checked(const Codes& labels) const {
        const std::size_t n_labels = structure().n_labels();
        require(labels.size() == n_places(), "labels must have one entry for each node");
        for (std::size_t j = 0; j < labels.size(); ++j)
            require(labels.data()[j] >= 0 && static_cast<std::size_t>(labels.data()[j]) < n_labels,
                    "labels must be codes in [0, n_labels)");
        return labels.data();
    }
};

inline const Offsets& checked_offsets(const Offsets& offsets) {
    require(offsets.size() > 0 && offsets.data()[0] == 0, "offsets must begin with 0");
    for (std::size_t i = 1; i < offsets.size(); ++i)
        require(offsets.data()[i] >= offsets.data()[i - 1], "offsets must not decrease");
    return offsets;
}

}  // namespace dualfield::bindings
