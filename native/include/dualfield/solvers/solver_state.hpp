// The state of a solver between two passes, as named arrays: enough to go on later to the very same result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dualfield {

using StateArray = std::variant<std::vector<float>, std::vector<double>, std::vector<std::uint64_t>>;
template <class T>
concept Number = std::is_arithmetic_v<T>;
using SolverState = std::map<std::string, StateArray>;

// A state that belongs to another problem, or that no solver has ever been in.
class StateError : public std::invalid_argument {
  public:
    explicit StateError(const std::string& what)
        : std::invalid_argument("the state of the solver does not belong to this problem: " + what) {}
};

// A solver lists what belongs to its state once, in a template that is given either of these two. States come from
// files: whatever is used as an index or as a divisor is checked here.
class StateWriter {
  public:
    template <std::ranges::range Values>
    void operator()(const char* name, const Values& values) {
        state_[name] = std::vector<std::ranges::range_value_t<Values>>(values.begin(), values.end());
    }
    template <Number T>
    void operator()(const char* name, T value) {
        state_[name] = std::vector<T>{value};
    }
    template <Number T>
    void at_least(const char* name, T value, T) {
        (*this)(name, value);
    }
    void permutation(const char* name, const std::vector<std::uint64_t>& values) { (*this)(name, values); }
    void subset(const char* name, const std::vector<std::uint64_t>& values, const std::vector<std::uint64_t>&) {
        (*this)(name, values);
    }
    SolverState release() { return std::move(state_); }

  private:
    SolverState state_;
};

class StateReader {
  public:
    explicit StateReader(const SolverState& state) : state_(state) {}

    template <std::ranges::range Values>
    void operator()(const char* name, Values& values) const {
        using T = std::ranges::range_value_t<Values>;
        const auto& found = find<T>(name, values.size());
        if constexpr (std::is_floating_point_v<T>)
            require(std::all_of(found.begin(), found.end(), [](T x) { return std::isfinite(x); }), name,
                    "holds what is not a finite number");
        std::copy(found.begin(), found.end(), values.begin());
    }
    // A number; it may be infinite, as bounds are before they are known.
    template <Number T>
    void operator()(const char* name, T& value) const {
        const T found = find<T>(name, 1).front();
        require(found == found, name, "is not a number");
        value = found;
    }
    template <Number T>
    void at_least(const char* name, T& value, T least) const {
        (*this)(name, value);
        require(value >= least && value < std::numeric_limits<T>::max(), name, "is out of range");
    }
    // The numbers that are in `values`, in any order.
    void permutation(const char* name, std::vector<std::uint64_t>& values) const {
        std::vector<std::uint64_t> found = find<std::uint64_t>(name, values.size()), one = found, other = values;
        std::sort(one.begin(), one.end());
        std::sort(other.begin(), other.end());
        require(one == other, name, "does not name every example once");
        values.swap(found);
    }
    // Some of the numbers in `all`, each at most once, in any order.
    void subset(const char* name, std::vector<std::uint64_t>& values, std::vector<std::uint64_t> all) const {
        const std::vector<std::uint64_t>& found = find<std::uint64_t>(name);
        std::vector<std::uint64_t> sorted = found;
        std::sort(sorted.begin(), sorted.end());
        std::sort(all.begin(), all.end());
        require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
                    std::includes(all.begin(), all.end(), sorted.begin(), sorted.end()),
                name, "names an example twice, or one that there is not");
        values = found;
    }

    template <class T>
    const std::vector<T>& find(const char* name) const {
        const auto at = state_.find(name);
        const auto* found = at == state_.end() ? nullptr : std::get_if<std::vector<T>>(&at->second);
        require(found != nullptr, name, "is missing or of another type");
        return *found;
    }

  private:
    template <class T>
    const std::vector<T>& find(const char* name, std::size_t size) const {
        const std::vector<T>& found = find<T>(name);
        require(found.size() == size, name, "has another size");
        return found;
    }
    static void require(bool condition, const char* name, const char* fault) {
        if (!condition) throw StateError(std::string(name) + " " + fault);
    }
    const SolverState& state_;
};

}  // namespace dualfield
