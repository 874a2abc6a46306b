/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of the module reprise._core: exceptions, types, functions. */
#define CORE_IMPORT_ARRAY
#include "module.h"
#include "core.h"
#include "durable.h"
#include "extension.h"
#include "rollouts.h"

static PyTypeObject *const types[] = {
    &core_Structure,        &core_Store,         &core_Server,           &core_Client,
    &core_TrajectoryWriter, &core_ColumnHistory, &core_TrajectoryColumn, &core_StructuredWriter,
    &core_BatchWriter,      &core_StepWriter,    &core_Sampler,          &core_Batch,
    &core_ReplayBuffer,     &core_WeakCellRef,   &core_Durable,          &core_TableExtension,
    &core_RolloutDraw,
};

int core_add(PyObject *module, const char *name, PyObject *obj)
{
    Py_INCREF(obj);
    if (PyModule_AddObject(module, name, obj) == 0) return 0;
    Py_DECREF(obj);
    return -1;
}

static int add_types(PyObject *module)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (PyModule_AddType(module, types[i]) < 0) return -1;
    return 0;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "reprise._core",
    .m_doc = "The C library as Python types, for the package reprise.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    import_array();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) return NULL;
    if (core_init_status(module) < 0) goto fail;
    if (core_init_nest(module) < 0 || add_types(module) < 0) goto fail;
    if (PyModule_AddFunctions(module, core_nest_functions) < 0) goto fail;
    if (PyModule_AddFunctions(module, core_signature_functions) < 0) goto fail;
    if (PyModule_AddFunctions(module, core_durable_functions) < 0) goto fail;
    if (PyModule_AddStringConstant(module, "__version__", RP_VERSION) < 0) goto fail;
    return module;
fail:
    Py_DECREF(module);
    return NULL;
}
