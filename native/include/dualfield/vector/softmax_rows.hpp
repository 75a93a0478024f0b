// What the vector code is given when it works on softmax problems over one node: many points, few classes.
//
// Notation, with weights c_i = C v_i: dual point p_i on the simplex, coefficients B_i = c_i (D_i - p_i) with D_i the
// indicator of the label, scores F = K B (times the label kernel), biases b. Arrays "by columns" are [class][stride]:
// one vector holds neighbouring points. Arrays "by rows" are [point][width], padded: one vector holds classes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dualfield {

// A point's share of the duality gap is c_i KL(p_i || softmax(F_i + b)), a sum of non-negative terms: nothing cancels.
template <class T>
struct DualColumns {
    std::size_t n_classes, stride;
    const T *scores, *log_p, *p;  // by columns
    const T *weights, *bias;      // c_i; b_c
    const std::int32_t* labels;
    T* terms;  // out: c_i KL_i
};
struct DualSums {
    double gap = 0.0;          // sum c_i KL_i
    double entropy = 0.0;      // sum c_i H(p_i)
    double alignment = 0.0;    // sum_i <B_i, F_i>
    double* shifts = nullptr;  // if given, [n_classes]: += sum_i c_i (softmax(F_i + b) - p_i), the slope along b
};

// Probabilities at given scores. With a pinned class, class 0 has score 0 and the rows are those of classes 1, 2, ...
template <class T>
struct SoftmaxColumns {
    std::size_t n_rows, stride;
    bool pinned;
    const T *scores, *bias, *weights;
    const std::int32_t* labels;
    T* p;  // out, by columns
};
struct SoftmaxSums {
    double loss = 0.0;         // sum c_i (log sum exp - score of the label)
    double* slopes = nullptr;  // if given, [n_rows]: += sum_i c_i (p_i - D_i)
};

// The curvature of the loss, W v = c (p v - p <p, v>) for v = values - shift: out = direction + W v.
template <class T>
struct CurvatureColumns {
    std::size_t n_rows, stride;
    const T *p, *weights, *values, *shift;  // shift [n_rows] or null
    const T* direction;
    T* out;  // null: only the sums are wanted
};
struct CurvatureSums {
    double product = 0.0;    // sum of values * out
    double* sums = nullptr;  // if given, [n_rows]: += sum_i (W v)_i
};

// The sub-problem on a working set, by rows; kernel [n][kernel_stride] may be centred.
template <class T>
struct BlockRows {
    std::size_t n, n_classes, width, kernel_stride;
    const T* kernel;
    T *scores, *log_p, *p;  // [n][width]; padding holds floor, floor, 0
    const T* weights;
    const T* own;      // [width]: 1 where a class has scores of its own, 0 for a pinned class and padding
    const T* present;  // [width]: 1 for classes, 0 for padding
    const std::int32_t* labels;
    T* scratch;  // [n + 16][width]
    std::size_t n_visits = 0, n_fallbacks = 0;
};

// log p below this is taken as this: p is then zero to all purposes, and exp() still a normal number.
template <class T>
inline constexpr T kLogFloor = sizeof(T) == 4 ? T(-80) : T(-700);

}  // namespace dualfield
