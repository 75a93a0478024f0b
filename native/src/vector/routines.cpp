#include "dualfield/vector/routines.hpp"

#include <atomic>

#include "routines_x86.hpp"

namespace dualfield {

#ifdef DUALFIELD_X86
extern const Routines routines_v4, routines_v3;
#endif
extern const Routines routines_baseline;

namespace {

const std::vector<Routines>& table() {
    static const std::vector<Routines> sets = {
#ifdef DUALFIELD_X86
        routines_v4, routines_v3,
#endif
        routines_baseline};
    return sets;
}

const Routines* best() {
    for (const Routines& set : table())
        if (set.is_supported()) return &set;
    return &table().back();
}

std::atomic<const Routines*>& current() {
    static std::atomic<const Routines*> chosen{best()};
    return chosen;
}

}  // namespace

std::span<const Routines> all_routines() {
    return table();
}

const Routines& routines() {
    return *current().load(std::memory_order_relaxed);
}

bool use_routines(std::string_view name) {
    for (const Routines& set : table()) {
        if (name != set.name || !set.is_supported()) continue;
        current().store(&set, std::memory_order_relaxed);
        return true;
    }
    return false;
}

}  // namespace dualfield
