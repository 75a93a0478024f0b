// Softmax problems with a kernel, solved by brute force: dense damped Newton in long double, a few dozen points.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "dualfield/objectives/kernel_problem.hpp"

namespace dualfield::testing {

using Real = long double;

// A small problem that owns what a KernelProblem points to.
template <class T>
struct SmallProblem {
    std::vector<double> features;  // [n][2]
    std::vector<std::int32_t> labels;
    std::vector<T> weights;
    std::vector<T> kernel;  // [n][n]
    std::vector<double> label_kernel;
    std::size_t n_classes = 2;
    bool pinned = true, with_bias = true;
    double gamma = 0.7;

    std::size_t size() const { return labels.size(); }
    std::size_t n_rows() const { return n_classes - (pinned ? 1 : 0); }

    // Points around class centres that overlap; weights between C / 2 and 3 C / 2 if uneven.
    // The distributions of another standard library draw other points from the same seed.
    SmallProblem(std::size_t n, std::size_t n_classes_, double C, bool uneven, unsigned seed) : n_classes(n_classes_) {
        std::mt19937 random(seed);
        std::normal_distribution<double> normal;
        std::uniform_real_distribution<double> uniform(0.5, 1.5);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t label = i % n_classes;
            labels.push_back(static_cast<std::int32_t>(label));
            for (int f = 0; f < 2; ++f)
                features.push_back(normal(random) + (f == static_cast<int>(label % 2) ? 1.0 : -0.5 * double(label)));
            weights.push_back(static_cast<T>(uneven ? C * uniform(random) : C));
        }
        fill();
    }

    void fill() {
        const std::size_t n = size();
        kernel.resize(n * n);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) {
                const double dx = features[2 * i] - features[2 * j], dy = features[2 * i + 1] - features[2 * j + 1];
                kernel[i * n + j] = static_cast<T>(std::exp(-gamma * (dx * dx + dy * dy)));
            }
    }

    KernelProblem<T> over(Gram<T>& gram) const {
        KernelProblem<T> problem{&gram, n_classes, pinned, with_bias, labels, weights};
        problem.label_kernel = label_kernel.empty() ? nullptr : label_kernel.data();
        return problem;
    }

    Real label_entry(std::size_t r, std::size_t s) const {
        return label_kernel.empty() ? (r == s ? 1 : 0) : static_cast<Real>(label_kernel[r * n_rows() + s]);
    }
    // 1 if row r is the label of point i.
    Real indicator(std::size_t i, std::size_t r) const {
        return static_cast<std::size_t>(labels[i]) == r + (pinned ? 1 : 0) ? 1 : 0;
    }

    std::vector<Real> scores(const std::vector<Real>& coefficients) const {
        const std::size_t n = size(), rows = n_rows();
        std::vector<Real> mixed(n * rows, 0), result(n * rows, 0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t s = 0; s < rows; ++s)
                    mixed[i * rows + r] += coefficients[i * rows + s] * label_entry(s, r);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                for (std::size_t r = 0; r < rows; ++r)
                    result[i * rows + r] += static_cast<Real>(kernel[i * n + j]) * mixed[j * rows + r];
        return result;
    }

    // softmax(scores + bias) by row, and the losses' sum.
    std::vector<Real> probabilities(const std::vector<Real>& scores, const std::vector<Real>& bias, Real& loss) const {
        const std::size_t n = size(), rows = n_rows();
        std::vector<Real> p(n * rows);
        loss = 0;
        for (std::size_t i = 0; i < n; ++i) {
            Real top = pinned ? 0 : -1e30L, own = 0;
            for (std::size_t r = 0; r < rows; ++r) {
                top = std::max(top, scores[i * rows + r] + bias[r]);
                own += indicator(i, r) * (scores[i * rows + r] + bias[r]);
            }
            Real total = pinned ? std::exp(-top) : 0;
            for (std::size_t r = 0; r < rows; ++r)
                total += p[i * rows + r] = std::exp(scores[i * rows + r] + bias[r] - top);
            for (std::size_t r = 0; r < rows; ++r) p[i * rows + r] /= total;
            loss += static_cast<Real>(weights[i]) * (std::log(total) + top - own);
        }
        return p;
    }

    Real objective(const std::vector<Real>& coefficients, const std::vector<Real>& bias) const {
        Real loss, square = 0;
        const std::vector<Real> f = scores(coefficients);
        probabilities(f, bias, loss);
        for (std::size_t k = 0; k < f.size(); ++k) square += coefficients[k] * f[k];
        return square / 2 + loss;
    }

    // The value of the dual at B = c (D - p), from the coefficients alone.
    Real dual(const std::vector<Real>& coefficients) const {
        const std::size_t n = size(), rows = n_rows();
        const std::vector<Real> f = scores(coefficients);
        const auto term = [](Real mass, Real weight) { return mass > 0 ? -mass * std::log(mass / weight) : Real(0); };
        Real value = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const Real weight = static_cast<Real>(weights[i]);
            Real rest = weight;
            for (std::size_t r = 0; r < rows; ++r) {
                const Real b = coefficients[i * rows + r], mass = weight * indicator(i, r) - b;
                value += term(mass, weight) - b * f[i * rows + r] / 2;
                rest -= mass;
            }
            if (pinned) value += term(rest, weight);
        }
        return value;
    }
};

// k(x, z) = 1 + x z between many points of a line, rows made as they are asked for.
class LineGram final : public Gram<float> {
  public:
    explicit LineGram(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            line_.push_back(static_cast<float>(std::sin(double(i * i) + 1.0)));
            diagonal_.push_back(1.0F + line_[i] * line_[i]);
        }
    }
    void rows(std::span<const std::int32_t> points, const float** out, ThreadTeam&) override {
        rows_.resize(points.size());
        for (std::size_t k = 0; k < points.size(); ++k) {
            rows_[k].resize(size());
            for (std::size_t j = 0; j < size(); ++j) rows_[k][j] = 1.0F + line_[points[k]] * line_[j];
            out[k] = rows_[k].data();
        }
    }
    void product(const float* coefficients, std::size_t, float* scores, std::size_t, ThreadTeam&) override {
        double sum = 0.0, moment = 0.0;
        for (std::size_t i = 0; i < size(); ++i) {
            sum += double(coefficients[i]);
            moment += double(coefficients[i]) * double(line_[i]);
        }
        for (std::size_t j = 0; j < size(); ++j) scores[j] = static_cast<float>(sum + moment * double(line_[j]));
    }

  private:
    std::vector<float> line_;
    std::vector<std::vector<float>> rows_;
};

// Gaussian elimination with pivoting; matrix [n][n] and right are overwritten, right by the solution.
inline void eliminate(std::size_t n, std::vector<Real>& matrix, std::vector<Real>& right) {
    for (std::size_t k = 0; k < n; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < n; ++i)
            if (std::abs(matrix[i * n + k]) > std::abs(matrix[pivot * n + k])) pivot = i;
        for (std::size_t j = 0; j < n; ++j) std::swap(matrix[k * n + j], matrix[pivot * n + j]);
        std::swap(right[k], right[pivot]);
        for (std::size_t i = k + 1; i < n; ++i) {
            const Real factor = matrix[i * n + k] / matrix[k * n + k];
            if (factor == 0) continue;
            for (std::size_t j = k; j < n; ++j) matrix[i * n + j] -= factor * matrix[k * n + j];
            right[i] -= factor * right[k];
        }
    }
    for (std::size_t k = n; k-- > 0;) {
        for (std::size_t j = k + 1; j < n; ++j) right[k] -= matrix[k * n + j] * right[j];
        right[k] /= matrix[k * n + k];
    }
}

struct ReferenceSolution {
    std::vector<Real> coefficients, bias;
    Real objective;
};

// Newton's method on  B = c (D - softmax(K B T + b)),  sum_i B_i = 0, halved until the primal falls.
template <class T>
ReferenceSolution reference(const SmallProblem<T>& problem) {
    const std::size_t n = problem.size(), rows = problem.n_rows(), size = n * rows;
    const std::size_t all = size + (problem.with_bias ? rows : 0);
    ReferenceSolution at{std::vector<Real>(size, 0), std::vector<Real>(rows, 0), 0};
    at.objective = problem.objective(at.coefficients, at.bias);
    for (int round = 0; round < 200; ++round) {
        Real loss;
        const std::vector<Real> p = problem.probabilities(problem.scores(at.coefficients), at.bias, loss);
        std::vector<Real> matrix(all * all, 0), step(all, 0);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t r = 0; r < rows; ++r) {
                const std::size_t k = i * rows + r;
                const Real weight = static_cast<Real>(problem.weights[i]);
                matrix[k * all + k] += 1;
                step[k] = weight * (problem.indicator(i, r) - p[k]) - at.coefficients[k];
                if (problem.with_bias) step[size + r] += weight * (problem.indicator(i, r) - p[k]);
                for (std::size_t s = 0; s < rows; ++s) {
                    const Real w = weight * p[k] * ((r == s ? 1 : 0) - p[i * rows + s]);
                    if (problem.with_bias) {
                        matrix[k * all + size + s] += w;
                        matrix[(size + r) * all + size + s] += w;
                    }
                    for (std::size_t j = 0; j < n; ++j)
                        for (std::size_t q = 0; q < rows; ++q) {
                            const Real entry =
                                w * static_cast<Real>(problem.kernel[i * n + j]) * problem.label_entry(q, s);
                            matrix[k * all + j * rows + q] += entry;
                            if (problem.with_bias) matrix[(size + r) * all + j * rows + q] += entry;
                        }
                }
            }
        // The scores of all classes may be shifted together: of all such biases, the one that sums to zero.
        for (std::size_t r = 0; r < rows && problem.with_bias && !problem.pinned; ++r)
            for (std::size_t s = 0; s < rows; ++s) matrix[(size + r) * all + size + s] += 1;
        eliminate(all, matrix, step);
        Real longest = 0, t = 1;
        for (const Real value : step) longest = std::max(longest, std::abs(value));
        for (int half = 0; half < 60; ++half, t /= 2) {
            ReferenceSolution next = at;
            for (std::size_t k = 0; k < size; ++k) next.coefficients[k] += t * step[k];
            for (std::size_t r = 0; r < rows && problem.with_bias; ++r) next.bias[r] += t * step[size + r];
            next.objective = problem.objective(next.coefficients, next.bias);
            if (next.objective > at.objective + 1e-18L * std::abs(at.objective)) continue;
            at = next;
            break;
        }
        if (longest < 1e-15L) break;
    }
    return at;
}

}  // namespace dualfield::testing
