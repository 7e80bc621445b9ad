/* SPDX-License-Identifier: MIT */
/* Answers to commands become outcomes, or send the command another way. */
#include "sink/redis/redis.h"

#include <hiredis/hiredis.h>

static struct ob_str text_of(const struct redisReply *reply)
{
	return (struct ob_str){ reply->str, (size_t)reply->len };
}

/* Not done, and to be sent again: by other means, or to another server. */
static bool goes_again(struct redis_sink *sink, struct ob_redis_node *node,
		       const struct ob_redis_command *command, struct ob_str text)
{
	struct ob_redis_redirect to;

	command->lane->detour = NULL;
	if (ob_redis_redirect_parse(text, &to))
		return ob_redis_redirect(sink, node, command->lane, &to);
	if (command->script && !command->eval && ob_redis_is_noscript(text)) {
		node->loaded = false;
		return true;
	}
	if (command->script && ob_redis_is_script_denied(text)) {
		sink->no_scripts = true; /* then one by one */
		return true;
	}
	return false;
}

/* The first that is left of a command has failed. */
static void fail_first(struct redis_sink *sink, struct ob_redis_node *node,
		       const struct ob_redis_command *command, struct ob_str text)
{
	struct ob_err err = OB_ERR_INIT;
	bool leave = false;

	(void)ob_redis_error(text, &leave, &err);
	if (leave && !node->leaving) {
		node->leaving = true;
		node->why = err;
		node->why.kind = OB_ERR_DOWN;
	}
	if (err.kind == OB_ERR_REJECT)
		ob_lane_rejected(&sink->lanes, command->lane, &err);
	else
		ob_lane_failed(&sink->lanes, command->lane, &err);
}

/* {how many are stored} or {how many, the error behind them} */
static bool script_reply(struct redis_sink *sink, struct ob_redis_node *node,
			 const struct ob_redis_command *command, const struct redisReply *reply)
{
	const struct redisReply *error = reply->elements == 2 ? reply->element[1] : NULL;

	if (reply->elements < 1 || reply->elements > 2 ||
	    reply->element[0]->type != REDIS_REPLY_INTEGER)
		return false;
	long long done = reply->element[0]->integer;
	if (done < 0 || done > command->count || (error != NULL) != (done < command->count) ||
	    (error && error->type != REDIS_REPLY_STRING))
		return false;
	node->loaded = node->loaded || command->eval;
	ob_lane_stored(&sink->lanes, command->lane, (uint32_t)done); /* the server has them */
	if (error)
		fail_first(sink, node, command, text_of(error));
	return true;
}

static bool take_reply(struct redis_sink *sink, struct ob_redis_node *node,
		       const struct ob_redis_command *command, const struct redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR) {
		if (!goes_again(sink, node, command, text_of(reply)))
			fail_first(sink, node, command, text_of(reply));
		return true;
	}
	command->lane->redirects = 0;
	command->lane->detour = NULL;
	if (command->script)
		return reply->type == REDIS_REPLY_ARRAY && script_reply(sink, node, command, reply);
	if (reply->type != REDIS_REPLY_STRING)
		return false;
	ob_lane_stored(&sink->lanes, command->lane, 1); /* the answer is its id in the stream */
	return true;
}

int ob_redis_reply(struct redis_sink *sink, struct ob_redis_node *node,
		   const struct redisReply *reply, struct ob_err *err)
{
	struct ob_redis_command *command = &node->ring[node->head];

	if (node->count == 0)
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "%.100s:%s answers what was not asked", node->host, node->port);
	if (command->asking) {
		command->asking = false; /* if it was refused, the next answer tells */
		return 0;
	}
	if (!take_reply(sink, node, command, reply))
		return ob_err_set(err, OUTBOX_ESINK, OB_ERR_DOWN,
				  "%.100s:%s gives an answer that fits no command", node->host,
				  node->port);
	ob_lane_give_back(&sink->lanes, command->lane);
	node->head = (node->head + 1) % sink->window;
	node->count--;
	return 0;
}
