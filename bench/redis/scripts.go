package redis

// What the scripts that people copy from articles and gateways do, written anew from
// their description. They are measured as they work best: on one server, with the
// faults left in that cost nothing.

// sortedSet is a log: an entry for each request, trimmed at every call. KEYS: the set.
// ARGV: window in ms, limit, now in ms, a member that is unique.
const sortedSet = `
local now = tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - tonumber(ARGV[1]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
	return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`

// twoKeys is a token bucket in two strings, written at every call, also at a refusal.
// KEYS: the tokens, the instant. ARGV: tokens per second, capacity, now in seconds.
const twoKeys = `
local rate, capacity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ttl = math.max(math.floor(capacity / rate) * 2, 1)
local tokens = tonumber(redis.call('GET', KEYS[1]) or capacity)
local at = tonumber(redis.call('GET', KEYS[2]) or now)
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local allowed = 0
if tokens >= 1 then
	tokens, allowed = tokens - 1, 1
end
redis.call('SETEX', KEYS[1], ttl, tokens)
redis.call('SETEX', KEYS[2], ttl, now)
return allowed`

// gateway is the same with the instant by Redis' TIME and the tokens left in the answer,
// as Spring Cloud Gateway has it.
const gateway = `
redis.replicate_commands()
local rate, capacity, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(redis.call('TIME')[1])
local ttl = math.max(math.floor(capacity / rate * 2), 1)
local tokens = tonumber(redis.call('GET', KEYS[1]))
if tokens == nil then tokens = capacity end
local at = tonumber(redis.call('GET', KEYS[2]))
if at == nil then at = 0 end
local filled = math.min(capacity, tokens + math.max(0, now - at) * rate)
local allowed = filled >= asked
local left, said = filled, 0
if allowed then
	left, said = filled - asked, 1
end
redis.call('SETEX', KEYS[1], ttl, left)
redis.call('SETEX', KEYS[2], ttl, now)
return {said, left}`
