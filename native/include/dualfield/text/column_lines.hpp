// Lines of text in columns: one token per line, a blank line between sentences.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace dualfield {

// Cuts a text, which must outlive it, into lines and these into columns. Lines end with a line feed. A line that is
// blank or begins with the word -DOCSTART-, which marks a document, ends a sentence.
class ColumnLines {
  public:
    enum class Kind { row, boundary, end };

    // `separator` is '\t' or ' ' where exactly one stands between columns, 0 for any run of spaces and tabs.
    // `first_line` is the number of the first line.
    ColumnLines(std::string_view text, char separator, std::size_t first_line)
        : rest_(text), separator_(separator), line_(first_line - 1) {}

    // Reads the next line; `columns` is replaced if it is a row.
    Kind next(std::vector<std::string_view>& columns);
    // The number of the line that was read last.
    std::size_t line() const noexcept { return line_; }

  private:
    std::string_view rest_;
    char separator_;
    std::size_t line_;
};

}  // namespace dualfield
