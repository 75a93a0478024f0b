#include "dualfield/text/column_lines.hpp"

#include <cstring>

namespace dualfield {

namespace {

constexpr std::string_view document_mark = "-DOCSTART-";

bool is_blank(char character) noexcept {
    return character == ' ' || character == '\t';
}

std::string_view without_blanks_before(std::string_view text) noexcept {
    std::size_t at = 0;
    while (at < text.size() && is_blank(text[at])) ++at;
    return text.substr(at);
}

bool marks_document(std::string_view text) noexcept {
    return text.starts_with(document_mark) &&
           (text.size() == document_mark.size() || is_blank(text[document_mark.size()]));
}

}  // namespace

ColumnLines::Kind ColumnLines::next(std::vector<std::string_view>& columns) {
    if (rest_.empty()) return Kind::end;
    ++line_;
    const void* const found = std::memchr(rest_.data(), '\n', rest_.size());
    const std::size_t length =
        found == nullptr ? rest_.size() : static_cast<std::size_t>(static_cast<const char*>(found) - rest_.data());
    const std::string_view line = rest_.substr(0, length);
    rest_.remove_prefix(length + (found != nullptr));
    std::string_view text = without_blanks_before(line);
    if (text.empty() || marks_document(text)) return Kind::boundary;
    columns.clear();
    if (separator_ != 0) {
        for (std::size_t start = 0;;) {
            const std::size_t stop = line.find(separator_, start);
            columns.push_back(line.substr(start, stop - start));
            if (stop == std::string_view::npos) return Kind::row;
            start = stop + 1;
        }
    }
    while (!text.empty()) {
        std::size_t size = 1;
        while (size < text.size() && !is_blank(text[size])) ++size;
        columns.push_back(text.substr(0, size));
        text = without_blanks_before(text.substr(size));
    }
    return Kind::row;
}

}  // namespace dualfield
