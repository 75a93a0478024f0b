#include "file_access.hpp"

#include <cerrno>
#include <cstring>
#include <limits>

#include "dualfield/streaming/block_source.hpp"

#ifdef _WIN32

namespace dualfield {
namespace {
[[noreturn]] void refuse() {
    throw StorageError(ENOSYS, "Training from a compiled corpus is not available on this system.");
}
}  // namespace
int open_to_read(const std::string&) {
    refuse();
}
int open_to_write(const std::string&, bool) {
    refuse();
}
void close_file(int) noexcept {}
bool read_range(int, const std::string&, std::uint64_t, std::span<std::byte>) {
    refuse();
}
void write_range(int, const std::string&, std::uint64_t, std::span<const std::byte>) {
    refuse();
}
void flush_file(int, const std::string&) {
    refuse();
}
std::uint64_t file_size(int, const std::string&) {
    refuse();
}
std::uint64_t free_space(int, const std::string&) {
    refuse();
}
}  // namespace dualfield

#else

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dualfield {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
    const int code = errno;
    throw StorageError(code, path + " " + what + ": " + std::strerror(code) + ".");
}

}  // namespace

int open_to_read(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(path, "cannot be opened");
    return file;
}

int open_to_write(const std::string& path, bool has_name) {
    if (has_name) {
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) fail(path, "cannot be opened");
        return file;
    }
    std::string name = path + "/dualfield-state-XXXXXX";
    const int file = ::mkstemp(name.data());
    if (file < 0) fail(path, "takes no temporary file");
    ::unlink(name.c_str());
    return file;
}

void close_file(int file) noexcept {
    if (file >= 0) ::close(file);
}

bool read_range(int file, const std::string& path, std::uint64_t begin, std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t n = ::pread(file, out.data(), out.size(), static_cast<off_t>(begin));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail(path, "cannot be read");
        if (n == 0) return false;
        out = out.subspan(static_cast<std::size_t>(n));
        begin += static_cast<std::uint64_t>(n);
    }
    return true;
}

void write_range(int file, const std::string& path, std::uint64_t begin, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(begin));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n == 0) errno = ENOSPC;
            fail(path, "cannot be written");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(n));
        begin += static_cast<std::uint64_t>(n);
    }
}

void flush_file(int file, const std::string& path) {
    if (::fsync(file) != 0 && errno != EINVAL) fail(path, "cannot be written");
}

std::uint64_t file_size(int file, const std::string& path) {
    struct stat found;
    if (::fstat(file, &found) != 0) fail(path, "cannot be looked at");
    return static_cast<std::uint64_t>(found.st_size);
}

std::uint64_t free_space(int file, const std::string& path) {
    struct statvfs found;
    if (::fstatvfs(file, &found) != 0) fail(path, "cannot be looked at");
    if (found.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();  // some file systems do not say
    return static_cast<std::uint64_t>(found.f_bavail) * static_cast<std::uint64_t>(found.f_frsize);
}

}  // namespace dualfield

#endif
