#!/bin/sh
# A handler for the exec sink: one JSON message per line in, one answer per line out.
#
#   sinks:
#     archive: { type: exec, command: "sh handler.sh /var/spool/archive" }
#
# Appends each message to a file named after its aggregate type, and answers
#   ok ID  |  retry ID reason  |  reject ID reason
# Only answers go to stdout; anything for people goes to stderr.
dir=${1:?usage: handler.sh DIRECTORY}

while IFS= read -r line; do
	# "id" always comes first in a line, so no JSON parser is needed to find it
	id=${line#'{"id":"'}
	id=${id%%'"'*}

	# for anything more than a plain name use jq: type=$(printf '%s\n' "$line" | jq -r .aggregate_type)
	type=${line#*'"aggregate_type":"'}
	type=${type%%'"'*}
	case $type in
	"" | *[!A-Za-z0-9_-]*)
		# it goes into a path: take no chances
		printf 'reject %s the aggregate type is not a plain name\n' "$id"
		continue
		;;
	esac

	# it may come twice (a crash before "ok" was read): readers of the file must tell by the id
	if printf '%s\n' "$line" >>"$dir/$type.ndjson"; then
		printf 'ok %s\n' "$id"
	else
		printf 'retry %s cannot write to %s\n' "$id" "$dir"
	fi
done
