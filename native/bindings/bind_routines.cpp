#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "dualfield/vector/routines.hpp"
#include "register.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace dualfield::bindings {

void register_routines(nb::module_& module) {
    module.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const Routines& set : all_routines())
                if (set.is_supported()) names.emplace_back(set.name);
            return names;
        },
        "The instruction sets of this build that the processor supports, best first.");
    module.def("instruction_set", [] { return std::string(routines().name); }, "The instruction set in use.");
    module.def(
        "use_instruction_set",
        [](const std::string& name) {
            if (!use_routines(name)) throw std::invalid_argument("no instruction set '" + name + "' on this machine");
        },
        "name"_a, "Choose an instruction set, for tests and measurements; not while other threads compute.");
}

}  // namespace dualfield::bindings
