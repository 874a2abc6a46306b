/* SPDX-License-Identifier: Apache-2.0 */
/* reprise: experience replay for reinforcement learning.
 *
 *   store.h          make a store, and tables in it
 *   writer.h         turn steps into chunks and items
 *   table_options.h  what a table is made of
 *   table.h          insert, sample, update priorities, delete; wait and ask why
 *   op.h             the same without a thread that waits: for event loops
 *   trajectory.h     what an item's data is; decode and stack it
 *   chunk.h          the compressed rows below that
 *   tensor.h         dtypes, shapes, signatures
 *   extension.h      callbacks that run with a table's operations
 *   server.h         a server of a store's tables
 *   replay_buffer.h  a ring of transitions in this process, without tables or servers
 *   sumtree.h        the sum tree, for use on its own
 *   printable.h      text of others made safe to show
 *
 * Tables on servers, or in a store of this process, behind one API:
 *
 *   client.h             connect to one server, to several, or to a store
 *   trajectory_writer.h  append steps, make items of any of the recent ones
 *   structured_writer.h  the same by patterns; many environments in one call
 *   step_writer.h        the same as Reverb's first writer did
 *   sampler.h            items one by one, or in stacked batches
 *   data.h               data directories at rest: verify, dump, salvage, convert
 *
 * examples/overlapping.c is the shortest complete program, examples/actor_learner.c the
 * shortest with a client. */
#ifndef REPRISE_REPRISE_H
#define REPRISE_REPRISE_H

#include "reprise/alloc.h"
#include "reprise/chunk.h"
#include "reprise/client.h"
#include "reprise/data.h"
#include "reprise/durable.h"
#include "reprise/extension.h"
#include "reprise/op.h"
#include "reprise/printable.h"
#include "reprise/replay_buffer.h"
#include "reprise/sampler.h"
#include "reprise/server.h"
#include "reprise/status.h"
#include "reprise/step_writer.h"
#include "reprise/store.h"
#include "reprise/structured_writer.h"
#include "reprise/sumtree.h"
#include "reprise/table.h"
#include "reprise/table_options.h"
#include "reprise/tensor.h"
#include "reprise/trajectory.h"
#include "reprise/trajectory_writer.h"
#include "reprise/wait.h"
#include "reprise/writer.h"

#endif
