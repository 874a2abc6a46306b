/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 under TLS: the page wants a plain socket, so it gets one end of a pair, and what
 * comes out of TLS is carried to the other end and back.
 *
 *   peer ══ TLS ══ link ──up──► pair ─────► page
 *                       ◄─down──     ◄─────
 *
 * Two buffers of a fixed size; whoever is slow holds up the other. A side that ends is told to
 * the other once everything before has been carried. Nothing moved for longer than the page
 * would wait, or a peer that does not go when it has its answer: it is closed. A worker has at
 * most RP_HTTP_PAGE_CONNECTIONS of them; the oldest makes room, as at the page. */
#ifndef RP_SERVER_PAGE_RELAY_H
#define RP_SERVER_PAGE_RELAY_H

#include "server/inside.h"

typedef struct rp_page_relay rp_page_relay;

/* Hands a secured link, of which nothing has been read, to the page. Takes the link in any
 * case: on failure it is closed. On the worker's thread; nobody may watch its descriptor. */
void rp_page_relay_open(rp_worker *worker, rp_link link, const char *peer,
                        const char *certificate);

/* Closes all of a worker's. */
void rp_page_relays_close(rp_worker *worker);

#endif
