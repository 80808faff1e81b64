-- KEYS: the nodes, a sorted set by when each was last seen in ms; those that ask Redis,
-- or can again after an outage, likewise; the birth of the state
-- ARGV: the node; for how many ms it counts, or 0 to leave; 1 if it can ask; an instant
-- Answers how many nodes there are, how many of them have said since that instant that
-- they can ask, the instant now, and the birth.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local function seen(key, life)
	redis.call('ZADD', key, now, ARGV[1])
	redis.call('PEXPIRE', key, life)
	redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', now - life))
end

local life = tonumber(ARGV[2])
if life == 0 then
	redis.call('ZREM', KEYS[1], ARGV[1])
	redis.call('ZREM', KEYS[2], ARGV[1])
else
	seen(KEYS[1], life)
	redis.call('SET', KEYS[3], t[1] .. '.' .. t[2] .. '-' .. ARGV[1], 'NX')
end
if ARGV[3] == '1' then seen(KEYS[2], life) end
return redis.call('ZCARD', KEYS[1]) .. ' ' .. redis.call('ZCOUNT', KEYS[2], ARGV[4], '+inf') .. ' ' ..
	string.format('%.0f', now) .. ' ' .. (redis.call('GET', KEYS[3]) or '')
