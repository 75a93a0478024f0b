// Files by position, whole ranges at a time; failures are StorageErrors that name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dualfield {

int open_to_read(const std::string& path);
// Made if it is not there. Without a name: a file in the folder `path` that has none.
int open_to_write(const std::string& path, bool has_name);
void close_file(int file) noexcept;
// False where the file ends before that.
bool read_range(int file, const std::string& path, std::uint64_t begin, std::span<std::byte> out);
void write_range(int file, const std::string& path, std::uint64_t begin, std::span<const std::byte> bytes);
// Returns when what was written is on the disk.
void flush_file(int file, const std::string& path);
std::uint64_t file_size(int file, const std::string& path);
// Bytes that can still be written where the file lies.
std::uint64_t free_space(int file, const std::string& path);

}  // namespace dualfield
