#include "template_values.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace dualfield {

namespace {

bool continues_character(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

void append(std::string& text, char32_t character) {
    const auto byte = [&text](char32_t bits) { text.push_back(static_cast<char>(static_cast<unsigned char>(bits))); };
    if (character < 0x80) return byte(character);
    if (character < 0x800) {
        byte(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            byte(0xe0 | character >> 12);
        } else {
            byte(0xf0 | character >> 18);
            byte(0x80 | (character >> 12 & 0x3f));
        }
        byte(0x80 | (character >> 6 & 0x3f));
    }
    byte(0x80 | (character & 0x3f));
}

bool between(char32_t character, char low, char high) noexcept {
    return character >= static_cast<char32_t>(low) && character <= static_cast<char32_t>(high);
}

unsigned classes_of(char32_t character, const Characters& characters) {
    if (character >= 0x80) return characters.classes(character);
    if (between(character, 'a', 'z')) return Characters::letter | Characters::lower | Characters::graphic;
    if (between(character, 'A', 'Z')) return Characters::letter | Characters::upper | Characters::graphic;
    if (between(character, '0', '9')) return Characters::digit | Characters::graphic;
    if (character == ' ' || between(character, '\t', '\r')) return Characters::space;
    return between(character, '!', '~') ? Characters::graphic : 0;
}

char32_t lowered(char32_t character, const Characters& characters) {
    if (character >= 0x80) return characters.lowered(character);
    return between(character, 'A', 'Z') ? character + ('a' - 'A') : character;
}

// Whether the classes are in what a small letter below a backslash stands for.
bool in_class(char letter, unsigned classes) {
    constexpr unsigned word = Characters::letter | Characters::digit;
    switch (letter) {
        case 'a':
            return (classes & Characters::letter) != 0;
        case 'd':
            return (classes & Characters::digit) != 0;
        case 'l':
            return (classes & Characters::lower) != 0;
        case 's':
            return (classes & Characters::space) != 0;
        case 'u':
            return (classes & Characters::upper) != 0;
        case 'w':
            return (classes & word) != 0;
        default:  // 'p': punctuation is what else leaves a mark
            return (classes & Characters::graphic) != 0 && (classes & (word | Characters::space)) == 0;
    }
}

bool matches(const Pattern::Item& item, char32_t character, const Characters& characters) {
    if (item.kind == '.') return true;
    if (item.kind == 'c') return character == item.character;
    const bool negated = between(static_cast<char32_t>(item.kind), 'A', 'Z');
    const char letter = static_cast<char>(negated ? item.kind + ('a' - 'A') : item.kind);
    return in_class(letter, classes_of(character, characters)) != negated;
}

// Start and end of the first match: the leftmost one, in which '?' takes its character if it can and '*' takes as few
// as it can, as in Wapiti. Items are gone through from the last to the first: ends[i] is where the match of all items
// seen so far that starts at i ends, or -1. This takes |items| x |text| steps, whatever the pattern.
std::optional<std::pair<std::size_t, std::size_t>> find_match(const Pattern& pattern, const std::u32string& text,
                                                              const Characters& characters) {
    const std::size_t size = text.size();
    std::vector<std::ptrdiff_t> ends(size + 1), next(size + 1);
    for (std::size_t i = 0; i <= size; ++i) ends[i] = pattern.to_end && i < size ? -1 : static_cast<std::ptrdiff_t>(i);
    for (auto item = pattern.items.rbegin(); item != pattern.items.rend(); ++item) {
        next.swap(ends);
        for (std::size_t i = size + 1; i-- > 0;) {
            const bool here = i < size && matches(*item, text[i], characters);
            if (item->repeat == Pattern::Repeat::once)
                ends[i] = here ? next[i + 1] : -1;
            else if (item->repeat == Pattern::Repeat::optional)
                ends[i] = here && next[i + 1] >= 0 ? next[i + 1] : next[i];
            else
                ends[i] = next[i] >= 0 ? next[i] : here ? ends[i + 1] : -1;
        }
    }
    const auto last_start = ends.begin() + (pattern.from_start ? 1 : static_cast<std::ptrdiff_t>(size + 1));
    const auto found = std::find_if(ends.begin(), last_start, [](std::ptrdiff_t end) { return end >= 0; });
    if (found == last_start) return std::nullopt;
    return std::pair(static_cast<std::size_t>(found - ends.begin()), static_cast<std::size_t>(*found));
}

std::string_view prefix(std::string_view value, std::int32_t length) {
    std::size_t at = 0;
    for (; length > 0 && at < value.size(); --length)
        while (++at < value.size() && continues_character(value[at])) continue;
    return value.substr(0, at);
}

std::string_view suffix(std::string_view value, std::int32_t length) {
    std::size_t at = value.size();
    for (; length > 0 && at > 0; --length)
        while (--at > 0 && continues_character(value[at])) continue;
    return value.substr(at);
}

// Capital letters as X, other letters as x, digits as d, all else as it is.
void append_shape(std::string_view value, bool runs_as_one, const Characters& characters, std::string& result) {
    std::optional<char32_t> previous;
    for (const char32_t character : decoded(value)) {
        const unsigned classes = classes_of(character, characters);
        const char32_t shape = (classes & Characters::upper) != 0    ? U'X'
                               : (classes & Characters::letter) != 0 ? U'x'
                               : (classes & Characters::digit) != 0  ? U'd'
                                                                     : character;
        if (!runs_as_one || previous != shape) append(result, shape);
        previous = shape;
    }
}

}  // namespace

Characters ascii_characters() noexcept {
    return {[](char32_t) { return 0u; }, [](char32_t character) { return character; }};
}

// A byte that starts no character is one by itself; the rest of a character cut short is missing.
std::u32string decoded(std::string_view bytes) {
    std::u32string characters;
    characters.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const auto lead = static_cast<unsigned char>(bytes[at++]);
        char32_t character = lead < 0xc0   ? lead
                             : lead < 0xe0 ? lead & 0x1fu
                             : lead < 0xf0 ? lead & 0x0fu
                                           : lead & 0x07u;
        if (lead >= 0xc0)
            while (at < bytes.size() && continues_character(bytes[at]))
                character = character << 6 | (static_cast<unsigned char>(bytes[at++]) & 0x3fu);
        characters.push_back(character);
    }
    return characters;
}

void derive(const Derivation& derivation, std::string_view value, const Characters& characters, std::string& result) {
    result.clear();
    switch (derivation.kind) {
        case Derivation::Kind::value:
            result = value;
            break;
        case Derivation::Kind::test:
            result = find_match(derivation.pattern, decoded(value), characters) ? "true" : "false";
            break;
        case Derivation::Kind::match: {
            const std::u32string text = decoded(value);
            if (const auto found = find_match(derivation.pattern, text, characters))
                for (std::size_t i = found->first; i < found->second; ++i) append(result, text[i]);
            break;
        }
        case Derivation::Kind::shape:
        case Derivation::Kind::outline:
            append_shape(value, derivation.kind == Derivation::Kind::outline, characters, result);
            break;
        case Derivation::Kind::prefix:
            result = prefix(value, derivation.length);
            break;
        case Derivation::Kind::suffix:
            result = suffix(value, derivation.length);
            break;
    }
    if (!derivation.lowered) return;
    const std::u32string text = decoded(result);
    result.clear();
    for (const char32_t character : text) append(result, lowered(character, characters));
}

// CRF++ writes _B-1, _B-2, ...; Wapiti _x-1 to _x-4 and then _x-#, and treats them like any value. A shape or an affix
// of such a string would say nothing, so those macros leave it as it is.
void derive_outside(const Derivation& derivation, TemplateSyntax syntax, std::ptrdiff_t place,
                    const Characters& characters, std::string& result) {
    constexpr std::ptrdiff_t farthest = 4;
    const std::ptrdiff_t distance = place < 0 ? -place : place;
    std::string text = syntax == TemplateSyntax::wapiti ? "_x" : "_B";
    text += place < 0 ? '-' : '+';
    text += syntax == TemplateSyntax::wapiti && distance > farthest ? "#" : std::to_string(distance);
    const bool of_its_own = derivation.kind == Derivation::Kind::shape ||
                            derivation.kind == Derivation::Kind::outline ||
                            derivation.kind == Derivation::Kind::prefix || derivation.kind == Derivation::Kind::suffix;
    if (of_its_own)
        result = text;
    else
        derive(derivation, text, characters, result);
}

}  // namespace dualfield
