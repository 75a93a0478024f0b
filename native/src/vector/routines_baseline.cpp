// Vector code for any processor that the compiler targets by default.
#include "table.hpp"

namespace dualfield {

extern const Routines routines_baseline;
const Routines routines_baseline = make_routines("baseline", +[] { return true; });

}  // namespace dualfield
