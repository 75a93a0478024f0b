// Text that is composed of short pieces.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace dualfield {

// Text that is put together from short pieces. A piece is copied as sixteen bytes where they can be read, which takes
// no call.
class TextBuffer {
  public:
    static constexpr std::size_t stride = 16;

    std::size_t size() const noexcept { return size_; }
    std::string_view text(std::size_t start, std::size_t stop) const noexcept {
        return {bytes_.data() + start, stop - start};
    }
    void clear() noexcept { size_ = 0; }
    // `readable` is how many bytes may be read where the piece starts, at least its size.
    void append(std::string_view piece, std::size_t readable) {
        if (bytes_.size() - size_ < piece.size() + stride) bytes_.resize(2 * (bytes_.size() + piece.size() + stride));
        if (piece.size() <= stride && readable >= stride)
            std::memcpy(bytes_.data() + size_, piece.data(), stride);
        else if (!piece.empty())
            std::memcpy(bytes_.data() + size_, piece.data(), piece.size());
        size_ += piece.size();
    }

  private:
    std::vector<char> bytes_;
    std::size_t size_ = 0;
};

// Fixed text of a line, with bytes behind it that may be read.
class Piece {
  public:
    explicit Piece(std::string_view text) : padded_(text), size_(text.size()) {
        padded_.append(TextBuffer::stride, ' ');
    }
    void append_to(TextBuffer& buffer) const { buffer.append({padded_.data(), size_}, padded_.size()); }

  private:
    std::string padded_;
    std::size_t size_;
};

}  // namespace dualfield
