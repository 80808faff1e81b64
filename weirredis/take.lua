-- Decides a batch of requests on the states of their keys, in one step of Redis.
--
-- A short way for the most frequent batches comes first. Then package algo is mirrored:
-- each function names the Go function that it follows, and must be changed with it. The
-- last part is the commit: all enforced
-- asks of a request are charged, or none. The node that sent the batch gets the
-- instant and the states as they were before it, and computes every answer from them
-- by algo itself; how many of each run of requests were allowed is sent along, so
-- that a mirror which is not one would be noticed.
--
-- Numbers are doubles. Every value is an integer below 2^52, every sum of a few of
-- them is exact, and products go through scale.
--
-- KEYS     the keys of the batch, each once
-- ARGV[1]  the batch; batch.go says how it is written
-- ARGV[2]  the instant in ticks, to decide by the nodes' clocks; left out, it is TIME

local floor, min, max = math.floor, math.min, math.max
local byte, sub, char, concat = string.byte, string.sub, string.char, table.concat
local pack, unpack_ = struct.pack, struct.unpack
local MAX, EXACT = 4503599627370495, 9007199254740992 -- 2^52-1, 2^53

local BUCKET, QUEUE, FIXED, FIRST, SLIDING, LOG = 1, 2, 3, 4, 5, 6
local TAKE, PEEK, ADJUST, RESET = 1, 2, 3, 4

local batch = ARGV[1]
local now, _
if ARGV[2] then
  now = tonumber(ARGV[2])
else
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
now = min(now, MAX)

local at = 3
local policies = {}
for i = 1, byte(batch, 1) + 256 * byte(batch, 2) do
  local p = {}
  p.kind, p.cap, p.unit, p.drain, p.window, p.step, p.life, at = unpack_('<BI7I7I7I7I7I7', batch, at)
  policies[i] = p
end

local values = redis.call('MGET', unpack(KEYS))

-- States are written with the fewest of 1, 2, 4 or 7 bytes for each number. The first
-- byte says which: two bits each for used, prev and unit, 64 if a ledger follows, and
-- 128 + width for a log.
local WIDTHS = {[0] = 1, 2, 4, 7}
local PARTS = {[0] = 'I1', 'I2', 'I4', 'I7'}
local formats, sizes = {}, {}
local function format(code)
  local f = formats[code]
  if not f then
    local a = code % 4
    local b = (code - a) / 4 % 4
    local c = (code % 64 - a - 4 * b) / 16
    f, sizes[code] = '<BI7' .. PARTS[a] .. PARTS[b] .. PARTS[c], 8 + WIDTHS[a] + WIDTHS[b] + WIDTHS[c]
    if code >= 64 then f, sizes[code] = f .. 'I7I7I7I7', sizes[code] + 28 end
    formats[code] = f
  end
  return f
end

local function width(n)
  if n < 256 then return 0 elseif n < 65536 then return 1 elseif n < 4294967296 then return 2 end
  return 3
end

-- A key is kept until its state equals a fresh one. The clocks of nodes differ from
-- Redis' and from each other; a minute is more.
local PX = ARGV[2] and 'PX' or 'PXAT'
local function expiry(s_at, left)
  if ARGV[2] then return floor((left + 999) / 1000) + 60000 end
  return floor((s_at + left + 999) / 1000)
end

-- By far the most batches ask for single units of buckets, each of a key of its own,
-- for requests of one rule or of several, or for so many equal requests of one. They are decided here, in one pass: what
-- stands below costs more to set up than this takes. Anything unusual ends the attempt
-- before a key is written, and then that decides. The arithmetic is that of drain,
-- room, ticks and charge.
local function plain()
  local allowed, found, texts, times = {}, {}, {}, {}
  local i, requests, finish = 0, 0, #batch
  while at <= finish do
    local verb, c1, c2, lo, hi, k1, k2, p1, p2, flags = byte(batch, at, at + 9)
    local runs = lo + 256 * hi
    if verb ~= TAKE or c2 ~= 0 or runs > 1 and c1 > 1 then return end
    at = at + 10
    local first, ok, count = i + 1, true, 1
    for ask = 1, c1 do
      if ask > 1 then
        k1, k2, p1, p2, flags = byte(batch, at, at + 4)
        at = at + 5
      end
      i = i + 1
      if flags ~= 0 or k1 + 256 * k2 ~= i - 1 then return end
      local p, v = policies[p1 + 256 * p2 + 1], values[i]
      if p.kind ~= BUCKET then return end
      local unit, drain, t, used, prev = p.unit, p.drain, now, 0, 0
      if v then
        local code = byte(v, 1)
        if not code or code >= 64 then return end
        local f, s_at, s_unit = format(code)
        if #v ~= sizes[code] then return end
        _, s_at, used, prev, s_unit = unpack_(f, v)
        if s_unit ~= unit then return end
        t = max(now, s_at)
        local product = (t - s_at) * drain
        if product >= EXACT then return end
        local rest = product % unit
        used, prev = used - (product - rest) / unit, prev - rest
        if prev < 0 then used, prev = used - 1, prev + unit end
        if used < 0 then used, prev = 0, 0 end
        found[i] = char(#v) .. v
      else
        found[i] = '\0'
      end
      local left = p.cap - used
      if prev > 0 then left = left - 1 end
      if left >= 1 then
        count = min(runs, left)
        used = used + count
        local parts = used * unit + prev
        if parts >= EXACT or used > MAX then return end
        local rest = parts % drain
        local last = (parts - rest) / drain
        if rest > 0 then last = last + 1 end
        local code = width(used) + 4 * width(prev) + 16 * width(unit)
        texts[i] = pack(format(code), code, t, used, prev, unit)
        times[i] = expiry(t, min(last, MAX + 1))
      else
        ok = false
      end
    end
    requests = requests + 1
    if ok then
      allowed[requests] = count == 1 and '\1\0' or pack('<I2', count)
    else
      allowed[requests] = '\0\0'
      for k = first, i do texts[k] = nil end
    end
  end
  for k = 1, i do
    if texts[k] then redis.call('SET', KEYS[k], texts[k], PX, times[k]) end
  end
  return pack('<I7', now) .. concat(allowed) .. concat(found)
end

local answer = plain()
if answer then return answer end
at = 3 + 43 * #policies

-- algo.scale, by the long-hand form that algo's tests hold to it where a double is
-- too narrow for the product.
local function scale(a, b, c)
  local product = a * b
  if product < EXACT then
    local r = product % c
    return (product - r) / c, r
  end
  local whole, part, d = 0, b, c
  while d <= part do d = d * 2 end
  while d >= c do
    if part >= d then part, whole = part - d, whole + d / c end
    d = d / 2
  end
  local q, r, bit = 0, 0, 1
  while bit <= a do bit = bit * 2 end
  bit = bit / 2
  while bit >= 1 and q <= MAX do
    q, r = q * 2, r * 2
    if r >= c then q, r = q + 1, r - c end
    if a >= bit and q <= MAX then
      a, q, r = a - bit, q + whole, r + part
      if r >= c then q, r = q + 1, r - c end
    end
    bit = bit / 2
  end
  if q > MAX then return MAX + 1, 0 end
  return q, r
end

-- algo.ticks
local function ticks(p, units, parts)
  local q, r = 0, units * p.unit + parts
  if r >= EXACT then
    q, r = scale(units, p.unit, p.drain)
    r = r + parts
  end
  local rest = r % p.drain
  q = q + (r - rest) / p.drain
  if rest > 0 then q = q + 1 end
  return min(q, MAX + 1)
end

-- algo.drain
local function drain(p, s, to)
  if s.unit ~= p.unit then
    if s.prev > 0 then
      local q, r = scale(s.prev, p.unit, s.unit)
      if r > 0 then q = q + 1 end
      s.prev = q
      if q >= p.unit then s.used, s.prev = s.used + 1, 0 end
    end
    s.unit = p.unit
  end
  local elapsed = to - s.at
  s.at = to
  if elapsed == 0 or (s.used == 0 and s.prev == 0) then return end
  local units, parts = scale(elapsed, p.drain, p.unit)
  s.used, s.prev = s.used - units, s.prev - parts
  if s.prev < 0 then s.used, s.prev = s.used - 1, s.prev + p.unit end
  if s.used < 0 then s.used, s.prev = 0, 0 end
end

-- algo.drainDownTo
local function drain_down_to(p, s, to, least)
  local held = s.used
  drain(p, s, to)
  least = min(least, held)
  if s.used < least then s.used, s.prev = least, 0 end
end

-- algo.Settle
local function settle(p, s)
  while s.edge and s.at_now >= s.edge do
    drain_down_to(p, s, max(s.edge, s.at), s.new + s.old)
    s.edge, s.next, s.new, s.old = s.next, 0, 0, s.new
    if s.old == 0 then s.edge = nil end
  end
  if s.edge then
    drain_down_to(p, s, s.at_now, s.new + s.old)
  else
    drain(p, s, s.at_now)
  end
end

-- algo.weighted
local function weighted(p, s)
  local q, r = scale(s.prev, p.window - s.at_now % p.window, p.window)
  if r > 0 then q = q + 1 end
  return q
end

-- A log is its raw text, read at need, and what the batch has changed of it: more
-- entries behind it, and new counts of old ones.
local function log_at(s, i)
  local e = s.more[i]
  if e then return e[1] end
  return (unpack_('<I7', s.raw, 16 + (i - 1) * s.size))
end

local function log_n(s, i)
  local e = s.more[i]
  if e then return e[2] end
  local edited = s.edits[i]
  if edited then return edited end
  return (unpack_(s.count, s.raw, 23 + (i - 1) * s.size))
end

local function log_set(s, i, n)
  local e = s.more[i]
  if e then e[2] = n else s.edits[i] = n end
end

-- algo.slice
local function slice(p, t) return t - t % p.step end

-- algo.newest
local function log_newest(s)
  for i = s.last, s.head, -1 do
    if log_n(s, i) > 0 then return log_at(s, i) end
  end
  return -1
end

-- algo.leaves
local function log_leaves(p, s, n)
  for i = s.head, s.last do
    n = n - log_n(s, i)
    if n <= 0 then return log_at(s, i) + p.window end
  end
  return 0
end

-- algo.Record
local function log_record(p, s, n)
  n = min(n, MAX - s.used)
  if n <= 0 then return end
  s.used = s.used + n
  local at, last = slice(p, s.at), s.last
  if last >= s.head and log_at(s, last) >= at then
    log_set(s, last, log_n(s, last) + n)
  else
    s.last = last + 1
    s.more[last + 1] = {at, n}
  end
end

-- Brings a state up to now: algo.drain, Settle, fixedAt, firstAt, slidingAt, expire.
local function age(p, s)
  local t = max(now, s.at)
  s.at_now = t
  local kind = p.kind
  if kind == BUCKET then
    if s.edge then settle(p, s) else drain(p, s, t) end
  elseif kind == QUEUE then
    drain(p, s, t)
  elseif kind == FIXED then
    if s.unit ~= p.window then s.used, s.prev, s.unit = 0, 0, p.window end
    local start = t - t % p.window
    if s.prev < start then s.prev, s.used = start, 0 end
  elseif kind == FIRST then
    if t - s.prev >= p.window then s.used, s.prev = 0, 0 end
  elseif kind == SLIDING then
    if s.unit ~= p.window then s.used, s.prev, s.unit, s.at = 0, 0, p.window, t end
    local gone = floor(t / p.window) - floor(s.at / p.window)
    if gone == 1 then
      s.used, s.prev = 0, s.used
    elseif gone ~= 0 then
      s.used, s.prev = 0, 0
    end
  else
    while s.head <= s.last and t - log_at(s, s.head) >= p.window do
      s.used = s.used - log_n(s, s.head)
      s.head = s.head + 1
    end
  end
  s.at = t
end

-- The most that may be taken of an aged state without a wait, below 0 if not even
-- nothing; of a queue, the most that finds a place.
local function room(p, s)
  local kind = p.kind
  if kind <= QUEUE then
    if s.prev > 0 then return p.cap - s.used - 1 end
    return p.cap - s.used
  elseif kind == FIXED then
    if s.prev > s.at then return -1 end
  elseif kind == SLIDING then
    return p.cap - s.used - weighted(p, s)
  end
  return p.cap - s.used
end

-- Whether cost is allowed: the OK of algo.bucket, queue, fixed, first, sliding and
-- DecideLog.
local function fits(p, s, cost, slack)
  local kind = p.kind
  if kind == QUEUE then
    return cost <= room(p, s) and ticks(p, s.used, s.prev) <= slack
  elseif cost <= room(p, s) then
    return true
  elseif slack == 0 or cost > p.cap then
    return false
  elseif kind == BUCKET then
    return ticks(p, s.used - (p.cap - cost), s.prev) <= slack
  elseif kind == FIXED then
    local start = s.prev
    if cost > p.cap - s.used then start = start + p.window end
    return start - s.at <= slack
  end
  return false
end

-- Charges a cost that fits.
local function charge(p, s, cost)
  if cost == 0 then return end
  local kind = p.kind
  s.dirty = true
  if kind == LOG then
    log_record(p, s, cost)
    return
  elseif kind == FIXED and cost > p.cap - s.used then
    s.prev, s.used = s.prev + p.window, 0
  elseif kind == FIRST and s.used == 0 then
    s.prev = s.at
  end
  s.used = min(s.used + cost, MAX)
end

-- algo.Adjust, AdjustLent and AdjustLog on an aged state.
local function adjust(p, s, at, delta)
  local kind = p.kind
  if kind == BUCKET or kind == QUEUE then
    local held = s.used
    if s.used + delta < 0 then
      s.used, s.prev = 0, 0
    else
      s.used = min(s.used + delta, MAX)
    end
    if s.edge then
      local least = min(s.new + s.old, held)
      if s.used < least then s.used, s.prev = least, 0 end
    end
  elseif kind == LOG then
    if delta >= 0 then return log_record(p, s, delta) end
    at = slice(p, at)
    local i = s.last
    while i >= s.head and log_at(s, i) >= at do
      if log_at(s, i) == at then
        local back = min(-delta, log_n(s, i))
        log_set(s, i, log_n(s, i) - back)
        s.used = s.used - back
        return
      end
      i = i - 1
    end
  elseif kind == FIRST and delta > 0 and s.used == 0 then
    s.prev, s.used = s.at, delta
  elseif kind == SLIDING then
    local start = s.at - s.at % p.window
    if delta > 0 or at >= start then
      s.used = max(min(s.used + delta, MAX), 0)
    elseif at >= start - p.window then
      s.prev = max(min(s.prev + delta, MAX), 0)
    end
  elseif delta > 0 or at >= s.prev then
    s.used = max(min(s.used + delta, MAX), 0)
  end
end

-- algo.Lend on an aged state; returns the units.
local function lend(p, s, want, name, used, back)
  if p.kind == BUCKET then
    local out = 0
    if s.edge then
      if name == s.next then
        out = min(used + back, s.new)
        s.new = s.new - out
      elseif name == s.edge then
        out = min(used + back, s.old)
        s.old = s.old - out
      end
      back = min(back, out)
      if out > 0 then s.dirty = true end
    else
      back = 0
    end
    if back > 0 then
      -- algo.Adjust, which knows of no ledger
      if s.used - back < 0 then s.used, s.prev = 0, 0 else s.used = s.used - back end
    end
  elseif back > 0 then
    adjust(p, s, name, -back)
    s.dirty = true
  end
  local left = room(p, s)
  if p.life == 0 or left < 20 then return 0 end
  local units = min(want, floor(left / 2))
  if p.kind == BUCKET then
    local new, old = 0, 0
    if s.edge then new, old = s.new, s.old end
    units = min(units, floor(p.cap / 2) - new - old)
    if units <= 0 then return 0 end
    if not s.edge then s.edge, s.next, s.new, s.old = s.at + p.life, 0, 0, 0 end
    s.next = max(s.next, s.edge + p.life)
    s.new = s.new + units
  end
  charge(p, s, units)
  return units
end

-- How many ticks an aged state matters: the Reset of a verdict, and the ledger's time.
local function reset(p, s)
  local kind = p.kind
  if kind <= QUEUE then
    local held = 0
    if s.edge then held = max(s.edge, s.next) - s.at end
    return held + ticks(p, s.used, s.prev)
  elseif kind == FIXED then
    if s.used > 0 then return s.prev + p.window - s.at end
    return max(s.prev - s.at, 0)
  elseif kind == FIRST then
    if s.used > 0 then return s.prev + p.window - s.at end
  elseif kind == SLIDING then
    local left = p.window - s.at % p.window
    if s.used > 0 then return left + p.window end
    if s.prev > 0 then return left end
  else
    local newest = log_newest(s)
    if newest >= 0 then return newest + p.window - s.at end
  end
  return 0
end

local function decode(p, v)
  local code = v and byte(v, 1)
  if p.kind == LOG then
    local s = {at = 0, used = 0, raw = '', head = 1, last = 0, size = 8, more = {}, edits = {}}
    if code and code > 128 and code <= 135 and #v >= 15 then
      s.size, s.count, s.raw = code - 121, '<I' .. (code - 128), v
      _, s.at, s.used = unpack_('<BI7I7', v)
      s.last = floor((#v - 15) / s.size)
    end
    return s
  end
  if not code or code >= 128 then return {at = 0, used = 0, prev = 0, unit = 0} end
  local f = format(code)
  if #v ~= sizes[code] then return {at = 0, used = 0, prev = 0, unit = 0} end
  local s = {}
  if code >= 64 then
    _, s.at, s.used, s.prev, s.unit, s.edge, s.next, s.new, s.old = unpack_(f, v)
  else
    _, s.at, s.used, s.prev, s.unit = unpack_(f, v)
  end
  return s
end

local function encode(p, s)
  if p.kind ~= LOG then
    local code = width(s.used) + 4 * width(s.prev) + 16 * width(s.unit)
    if s.edge then
      code = code + 64
      return pack(format(code), code, s.at, s.used, s.prev, s.unit, s.edge, s.next, s.new, s.old)
    end
    return pack(format(code), code, s.at, s.used, s.prev, s.unit)
  end
  local most = 0
  for _, n in pairs(s.edits) do most = max(most, n) end
  for _, e in pairs(s.more) do most = max(most, e[2]) end
  local w = WIDTHS[width(most)]
  local size, out = s.size, {}
  if s.raw ~= '' and w <= size - 7 then
    w = size - 7
    if next(s.edits) then
      for i = s.head, #s.raw < 15 and 0 or floor((#s.raw - 15) / size) do
        out[#out + 1] = pack('<I7I' .. w, log_at(s, i), log_n(s, i))
      end
    else
      out[1] = sub(s.raw, 16 + (s.head - 1) * size)
    end
    for i = max(s.head, floor((#s.raw - 15) / size) + 1), s.last do
      out[#out + 1] = pack('<I7I' .. w, s.more[i][1], s.more[i][2])
    end
  else
    for i = s.head, s.last do
      out[#out + 1] = pack('<I7I' .. w, log_at(s, i), log_n(s, i))
    end
  end
  return pack('<BI7I7', 128 + w, s.at, s.used) .. concat(out)
end

-- The batch, whatever is in it.

local states = {}
local function open(i, p)
  local s = states[i]
  if not s then
    s = decode(p, values[i])
    states[i] = s
  end
  s.p = p
  age(p, s)
  return s
end

local reply, logs = {pack('<I7', now)}, {}

-- What a node must know of a log to answer for it: the units it holds, its instant,
-- its newest charge, and when there is room for a cost that was refused.
local function digest(p, s, cost, ok)
  local leaves = 0
  if not ok and cost <= p.cap then leaves = log_leaves(p, s, s.used + cost - p.cap) end
  logs[#logs + 1] = pack('<I7I7I7I7', s.used, s.at, log_newest(s) + 1, leaves)
end

local asks = {}
local finish = #batch
while at <= finish do
  local verb, c1, c2, lo, hi = byte(batch, at, at + 4)
  local count = c1 + 256 * c2
  at = at + 5
  if verb <= PEEK then
    local times = lo + 256 * hi
    local ok = true
    for n = 1, count do
      local k1, k2, p1, p2, flags = byte(batch, at, at + 4)
      at = at + 5
      local a = asks[n]
      if not a then
        a = {}
        asks[n] = a
      end
      a.cost, a.slack, a.shadow = 1, 0, flags % 2 == 1
      if flags >= 2 then a.cost, a.slack, at = unpack_('<I7I7', batch, at) end
      local p = policies[p1 + 256 * p2 + 1]
      local s = open(k1 + 256 * k2 + 1, p)
      a.p, a.s = p, s
      a.ok = fits(p, s, a.cost, a.slack)
      if p.kind == LOG then digest(p, s, a.cost, a.ok) end
      if not a.ok and not a.shadow then ok = false end
    end
    local allowed = 0
    if times == 1 then
      if verb == TAKE then
        for n = 1, count do
          local a = asks[n]
          if a.ok and (ok or a.shadow) then charge(a.p, a.s, a.cost) end
        end
      end
      if ok then allowed = 1 end
    else
      -- A run of equal requests of one ask: as many as fit.
      local a = asks[1]
      local p, s, cost = a.p, a.s, a.cost
      if verb == PEEK or cost == 0 then
        if a.ok then allowed = times end
      elseif p.kind ~= QUEUE and a.slack == 0 then
        allowed = max(min(times, floor(room(p, s) / cost)), 0)
        charge(p, s, allowed * cost)
      else
        while allowed < times and fits(p, s, cost, a.slack) do
          charge(p, s, cost)
          allowed = allowed + 1
        end
      end
      if p.kind == LOG then digest(p, s, cost, allowed == times) end
    end
    reply[#reply + 1] = pack('<I2', allowed)
  else
    local i, p = lo + 256 * hi + 1, policies[count + 1]
    if verb == ADJUST then
      local when, back, delta
      when, back, delta, at = unpack_('<I7BI7', batch, at)
      local s = open(i, p)
      if back == 1 then delta = -delta end
      adjust(p, s, when, delta)
      s.dirty = true
    elseif verb == RESET then
      states[i] = decode(p)
      states[i].gone = true
    else
      local want, name, used, back
      want, name, used, back, at = unpack_('<I7I7I7I7', batch, at)
      reply[#reply + 1] = pack('<I7', lend(p, open(i, p), want, name, used, back))
    end
  end
end

for i = 1, #KEYS do
  local s, v = states[i], values[i]
  if s.dirty then
    local p = s.p
    local left = reset(p, s)
    s.gone = left == 0
    if s.gone then
      -- It equals a fresh one.
    else
      redis.call('SET', KEYS[i], encode(p, s), PX, expiry(s.at, left))
    end
  end
  if v and s.gone then redis.call('DEL', KEYS[i]) end
  -- The states as they were, without those of logs, of which the digests are enough.
  if v and #v < 128 and s.used and not s.raw then
    reply[#reply + 1] = char(#v)
    reply[#reply + 1] = v
  else
    reply[#reply + 1] = '\0'
  end
end
return concat(reply) .. concat(logs)
