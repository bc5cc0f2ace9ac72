import { SCHEMA } from "../durable/parts.js";
import { TURN_MS } from "../turns.js";

/** No client sends a commit again later than this, in seconds. */
const KNOWN_S = 120;

/**
 * The script of the store: what it does is one moment for everybody else, and written whole.
 *
 * `KEYS`: the sorted set of keys, the hash of values, the hash of versions; of a commit, also its own name, and that of the turn
 * of its session. A client may send a commit again when its connection broke, though it was executed: by its name it is
 * known, and not refused as a conflict with itself.
 *
 * `ARGV` of a scan: `scan`, the first key, the key after the last, whether in reverse, whether without values, how many, how
 * many bytes. It returns keys and values by turns, or keys alone.
 *
 * `ARGV` of a commit: `commit`, how many expectations, puts and deletes; who asks for turns (nobody: none), races lost with
 * this one, whether others' turns are waited for; keys with versions (none: absent), keys with values, keys. It returns
 * nothing, `wait`, or the number of the expectation that does not hold and the version that is there.
 */
export const SCRIPT = `
local rows, values, versions, done, turn = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if ARGV[1] == 'scan' then
  local low, high, limit = '[' .. ARGV[2], '(' .. ARGV[3], ARGV[6]
  local found
  if ARGV[4] == '1' then found = redis.call('ZREVRANGEBYLEX', rows, high, low, 'LIMIT', 0, limit)
  else found = redis.call('ZRANGEBYLEX', rows, low, high, 'LIMIT', 0, limit) end
  if ARGV[5] == '1' then return found end
  local page, bytes, most = {}, 0, tonumber(ARGV[7])
  for i, key in ipairs(found) do
    bytes = bytes + redis.call('HSTRLEN', values, key)
    if i > 1 and bytes > most then break end
    page[#page + 1] = key
    page[#page + 1] = redis.call('HGET', values, key) or ''
  end
  return page
end
if redis.call('EXISTS', done) == 1 then return '' end
local who, lost, at = ARGV[5], tonumber(ARGV[6]), 8
local before, owner
if who ~= '' then
  before, owner = string.match(redis.call('GET', turn) or '', '^(%d+):(.*)$')
end
for i = 1, tonumber(ARGV[2]) do
  local found = redis.call('HGET', versions, ARGV[at]) or ''
  if found ~= ARGV[at + 1] then
    if who ~= '' and lost > tonumber(before or 0) then redis.call('SET', turn, lost .. ':' .. who, 'PX', ${TURN_MS}) end
    return i .. ':' .. found
  end
  at = at + 2
end
if owner and owner ~= who and ARGV[7] == '1' then return 'wait' end
if owner == who then redis.call('DEL', turn) end
if ARGV[3] == '0' and ARGV[4] == '0' then return '' end
redis.call('SET', done, '', 'EX', ${KNOWN_S})
redis.call('HSETNX', versions, '', '${SCHEMA}')
for i = 1, tonumber(ARGV[3]) do
  redis.call('HINCRBY', versions, ARGV[at], 1)
  redis.call('HSET', values, ARGV[at], ARGV[at + 1])
  redis.call('ZADD', rows, 0, ARGV[at])
  at = at + 2
end
for i = 1, tonumber(ARGV[4]) do
  redis.call('HDEL', versions, ARGV[at])
  redis.call('HDEL', values, ARGV[at])
  redis.call('ZREM', rows, ARGV[at])
  at = at + 1
end
return ''
`;
