/* SPDX-License-Identifier: MIT */
/* What the tests of the http sink share: sinks, outcomes, and signatures. Failures end the test. */
#ifndef OB_TESTS_SINK_HTTP_FIXTURE_H
#define OB_TESTS_SINK_HTTP_FIXTURE_H

#include "http_receiver.h"
#include "sink_harness.h"

#define SECRET_1 "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
#define SECRET_2 "whsec_YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXphYmNkZWY="

/* A sink, not opened, with these options more. */
struct ob_sink *make_url(const char *url, const struct ob_opt_value *more, size_t count);
/* To the receiver, with one more option; opened. */
struct ob_sink *make(const struct http_receiver *receiver, const char *name, const char *value);
void send_parcel(struct ob_sink *sink, const struct parcel *parcel);
/* The next one. */
struct ob_err outcome(struct ob_sink *sink);
/* Send one; its outcome. */
struct ob_err try_one(struct ob_sink *sink);
/* Is the request signed with these secrets, as another implementation does it? */
void check_signature(const struct http_request_seen *seen, const char *secrets[], size_t n);

#endif
