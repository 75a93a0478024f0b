// What macros make of one value. All of this runs once for each distinct value, so it may take its time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dualfield/text/templates.hpp"

namespace dualfield {

// Replaces `result`. The value must be valid UTF-8, and so is what comes out: nothing cuts a character in two.
void derive(const Derivation& derivation, std::string_view value, const Characters& characters, std::string& result);

// The same for a place outside the sentence: -1 is right before it, 1 right behind it.
void derive_outside(const Derivation& derivation, TemplateSyntax syntax, std::ptrdiff_t place,
                    const Characters& characters, std::string& result);

// The characters of valid UTF-8.
std::u32string decoded(std::string_view bytes);

}  // namespace dualfield
