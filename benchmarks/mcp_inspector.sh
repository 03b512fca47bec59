#!/bin/sh
# Calls every tool, resource and prompt of `memchat mcp` with the inspector of the protocol's makers,
# over stdio and over HTTP, on a store in a temporary folder. It needs npx and, for the first run,
# the network; 2.12.0 names Node 22.19 as the oldest it supports and ran on Node 20.20 too.
#
#   sh benchmarks/mcp_inspector.sh [PYTHON]
#
# Prints a line for each call, and ends with 1 where one failed.
set -u
PYTHON=${1:-.venv/bin/python}
VERSION=2.12.0
PORT=8799
HOME_DIR=$(mktemp -d)
failed=0
export MEMCHAT_HOME="$HOME_DIR/stdio" MEMCHAT_EMBED_MODEL=hash MEMCHAT_USER=ana

memchat() { "$PYTHON" -m memchat "$@"; }
inspect() { npx -y "@modelcontextprotocol/inspector@$VERSION" --cli "$@" 2>"$HOME_DIR/err"; }

check() { # what it is, what must stand in the answer, then the arguments of the inspector
  name=$1 wanted=$2
  shift 2
  answer=$(server "$@")
  if [ $? -eq 0 ] && echo "$answer" | grep -q "$wanted" && ! echo "$answer" | grep -q '"isError": true'
  then echo "ok      $name"
  else echo "FAILED  $name: $(echo "$answer" | tr -d '\n' | cut -c1-200)"; failed=1
  fi
}

tool() { # its name, what must stand in the answer, then its arguments as name=value
  tool=$1 wanted=$2
  shift 2
  check "$tool" "$wanted" --method tools/call --tool-name "$tool" ${1:+--tool-arg "$@"}
}

everything() { # what is remembered, on a store with one memory
  memchat memories add profile city Porto >/dev/null
  check tools/list '"query_memory"' --method tools/list
  tool get_capabilities '"memory_on": true'
  tool remember '"status": "stored"' type=preference key=drinks "value=$1"
  tool recall "$1" "query=$1"
  tool list_memories "$1"
  tool get_context "$1" "message=What does she drink, $1?"
  tool index_memo 'Indexed 1 chunks' memoId=m1 'transcript=The garden costs 400 euros.' createdAt=2026-05-01
  tool query_memory 'garden costs' 'question=What does the garden cost?'
  tool ask 'garden' 'question=What does the garden cost?'
  tool promote_memory '"status": "waiting"' memory_id=1
  tool update_memory '"status"' memory_id=1 'value=Faro'
  check resources/list 'memchat://profile' --method resources/list
  check resources/templates/list 'memchat://notes/' --method resources/templates/list
  for place in profile memories/1 notes/1; do
    check "memchat://$place" '"text"' --method resources/read --uri "memchat://$place"
  done
  check prompts/list '"profile"' --method prompts/list
  check prompts/get 'messages' --method prompts/get --prompt-name profile
  tool forget '"status": "hidden"' memory_id=1
}

echo "inspector $VERSION, Node $(node --version), over stdio"
server() {
  inspect -e "MEMCHAT_HOME=$MEMCHAT_HOME" -e MEMCHAT_EMBED_MODEL=hash -e MEMCHAT_USER=ana \
    -e "PYTHONPATH=${PYTHONPATH:-}" "$PYTHON" -m memchat mcp --client Inspector "$@"
}
everything "green tea"

echo "over HTTP"
export MEMCHAT_HOME="$HOME_DIR/http"
TOKEN=$(memchat mcp token Inspector --mode trust)
"$PYTHON" -m memchat mcp --http --port "$PORT" 2>/dev/null &  # not memchat(): $! would be its shell
SERVER=$!
trap 'kill "$SERVER" 2>/dev/null; rm -rf "$HOME_DIR"' EXIT
until curl -s -o "$HOME_DIR/seen" "http://127.0.0.1:$PORT/mcp"; do sleep 1; done
server() { inspect "http://127.0.0.1:$PORT/mcp" --transport http --header "Authorization: Bearer $TOKEN" "$@"; }
everything "black tea"
exit "$failed"
