#pragma once
#include <nanobind/nanobind.h>

namespace dualfield::bindings {

void register_vocabulary(nanobind::module_& module);
void register_templates(nanobind::module_& module);
void register_corpus(nanobind::module_& module);
void register_anchored(nanobind::module_& module);
void register_structures(nanobind::module_& module);
void register_tree(nanobind::module_& module);
void register_semi_markov(nanobind::module_& module);
void register_grammar(nanobind::module_& module);
void register_dependency(nanobind::module_& module);
void register_spans(nanobind::module_& module);
void register_graph(nanobind::module_& module);
void register_masked(nanobind::module_& module);
void register_factor_graph(nanobind::module_& module);
void register_user_structures(nanobind::module_& module);
void register_routines(nanobind::module_& module);
void register_kernel_matrices(nanobind::module_& module);
void register_kernels(nanobind::module_& module);
void register_problems(nanobind::module_& module);
void register_kernel_ascent(nanobind::module_& module);
void register_tables(nanobind::module_& module);

}  // namespace dualfield::bindings
