// Lists what the extension module offers; each concept registers itself in a file of its own.
#include <nanobind/nanobind.h>

#include "register.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Native core of dualfield: everything that runs once per example, node, clique or attribute.";
    dualfield::bindings::register_vocabulary(module);
    dualfield::bindings::register_templates(module);
    dualfield::bindings::register_corpus(module);
    dualfield::bindings::register_anchored(module);
    dualfield::bindings::register_structures(module);
    dualfield::bindings::register_tree(module);
    dualfield::bindings::register_semi_markov(module);
    dualfield::bindings::register_grammar(module);
    dualfield::bindings::register_dependency(module);
    dualfield::bindings::register_spans(module);
    dualfield::bindings::register_graph(module);
    dualfield::bindings::register_masked(module);
    dualfield::bindings::register_factor_graph(module);
    dualfield::bindings::register_user_structures(module);
    dualfield::bindings::register_routines(module);
    dualfield::bindings::register_kernel_matrices(module);
    dualfield::bindings::register_kernels(module);
    dualfield::bindings::register_problems(module);
    dualfield::bindings::register_kernel_ascent(module);
    dualfield::bindings::register_tables(module);
}
