-- KEYS: the nodes, a sorted set by when each was last seen in ms; the birth of the state
-- ARGV: the node; for how many ms it counts, or 0 to leave
-- Answers how many nodes there are, a space, and the birth.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local life = tonumber(ARGV[2])
if life == 0 then
	redis.call('ZREM', KEYS[1], ARGV[1])
else
	redis.call('ZADD', KEYS[1], now, ARGV[1])
	redis.call('PEXPIRE', KEYS[1], life)
	redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now - life))
	redis.call('SET', KEYS[2], t[1] .. '.' .. t[2] .. '-' .. ARGV[1], 'NX')
end
return redis.call('ZCARD', KEYS[1]) .. ' ' .. (redis.call('GET', KEYS[2]) or '')
