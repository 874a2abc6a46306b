/* SPDX-License-Identifier: Apache-2.0 */
/* reprise: experience replay for reinforcement learning. Includes every header of the library.
 *
 * Tables in this process:
 *
 *   store.h          a set of tables that share a byte budget
 *   table_options.h  selectors, rate limiter and bounds of a table
 *   table.h          insert, sample, update and delete items; wait, and ask why a call waits
 *   trajectory.h     the data of an item; decode and stack it
 *   extension.h      callbacks that get events: inserts, samples, ... of a table
 *   durable.h        a store that survives its process: checkpoints and a journal
 *   data.h           data directories at rest: verify, dump, salvage, convert
 *   server.h         a server for the tables of a store
 *
 * Tables on servers, or in a store of this process, behind one API:
 *
 *   client.h             connect to one server, to several, or to a store
 *   trajectory_writer.h  append steps, create items of any recent steps
 *   structured_writer.h  create items by patterns; write for many environments in one call
 *   step_writer.h        create items of the latest steps, like Reverb's older writer
 *   sampler.h            read items one by one or in stacked batches
 *   runs.h               report scalars of a training run, and read them
 *
 * Without tables or servers:
 *
 *   replay_buffer.h  a ring buffer of transitions
 *   sumtree.h        the sum tree behind prioritized sampling
 *
 * For training language models:
 *
 *   rollouts.h       groups of items with policy versions, leases and columns added later
 *   rollout_calls.h  the calls on rollouts, on a server or in this process
 *
 * Used by the headers above:
 *
 *   status.h     statuses and error texts
 *   wait.h       deadlines and cancellation of calls
 *   alloc.h      allocators
 *   tensor.h     dtypes, shapes, tensors, signatures
 *   codec.h      compression of the data that writers send
 *   printable.h  text from peers and files, made safe to print
 *   version.h    the version of the library
 *
 * NULL: a call that returns rp_status returns RP_INVALID, with a text, if one of these
 * arguments is NULL although the comment on the call does not allow it: a struct of options or
 * arguments, a name, an array with a count above 0, or the store or client for which the call
 * makes an object. Calls do not check the object on which they are called, nor the pointers to
 * single results. Functions that free or drop an object accept NULL.
 *
 * examples/overlapping.c is the shortest complete program. examples/actor_learner.c is the
 * shortest program with a server. */
#ifndef REPRISE_REPRISE_H
#define REPRISE_REPRISE_H

#include "reprise/alloc.h"
#include "reprise/client.h"
#include "reprise/codec.h"
#include "reprise/data.h"
#include "reprise/durable.h"
#include "reprise/extension.h"
#include "reprise/printable.h"
#include "reprise/replay_buffer.h"
#include "reprise/rollout_calls.h"
#include "reprise/rollouts.h"
#include "reprise/runs.h"
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
#include "reprise/version.h"
#include "reprise/wait.h"

#endif
