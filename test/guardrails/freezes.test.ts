/** The windows of MCP_FREEZE_WINDOWS: how they are read, and which instants they contain where clocks change. */
import t from 'tap'
import { readFreezes } from '../../config/read-freezes.js'
import { findFreeze, sayLocal } from '../../domain/guardrails/find-freeze.js'
import { runsOf } from '../property-runs.js'

/** Reads windows; the faults are in their order. */
function read(text: string) {
  const faults: { problem: string; remedy: string }[] = []
  const windows = readFreezes({ env: { MCP_FREEZE_WINDOWS: text }, faults, warnings: [] }) ?? []
  return { windows, faults: faults.map(({ problem }) => problem.replace('MCP_FREEZE_WINDOWS: ', '')) }
}
/** The end of the freeze at an instant, as ISO 8601 in UTC without seconds; null if there is none. */
const endAt = (text: string, instant: string): string | null => {
  const freeze = findFreeze(read(text).windows, Date.parse(instant))
  return freeze === null ? null : freeze.until === null ? 'never' : new Date(freeze.until).toISOString().slice(0, 16)
}

t.test('faults are named, each window with its own', (t) => {
  const faults = (text: string) => read(text).faults
  t.same(
    faults('Fri 18:00 - Mon 06:00 Europe/Berlin; 22:00–06:00 UTC; 2026-12-20T00:00/2027-01-04T00:00 America/New_York'),
    [],
  )
  t.same(faults('22:00-06:00'), [
    '"22:00-06:00" must end with a time zone such as Europe/Berlin, and "22:00-06:00" is none',
  ])
  t.same(faults('22:00 - 06:00 Europe/Berlim; Fri 18:00 - 06:00 UTC; 22:00 - 22:00 UTC'), [
    '"22:00 - 06:00 Europe/Berlim" must end with a time zone such as Europe/Berlin, and "Europe/Berlim" is none',
    '"Fri 18:00 - 06:00 UTC" must have a day of the week at both ends, or at none',
    '"22:00 - 22:00 UTC" begins and ends at the same time',
  ])
  const times = 'must be two times, such as 22:00 - 06:00 or Fri 18:00 - Mon 06:00, or two dates with times'
  t.same(faults('24:00 - 06:00 UTC'), [`"24:00 - 06:00 UTC" ${times}`])
  t.same(faults('Fry 18:00 - Mon 06:00 UTC'), [`"Fry 18:00 - Mon 06:00 UTC" ${times}`])
  t.same(faults('2026-02-30T00:00/2026-03-04T00:00 UTC'), [
    '"2026-02-30T00:00/2026-03-04T00:00 UTC" must be two dates with times, with a slash between them',
  ])
  t.same(faults('2026-12-20T00:00/2026-12-19T00:00 UTC'), [
    '"2026-12-20T00:00/2026-12-19T00:00 UTC" ends before it begins',
  ])
  t.same(faults(' ; '), ['MCP_FREEZE_WINDOWS must have 1 to 100 windows'])
  t.end()
})

t.test('windows contain their beginning and not their end', (t) => {
  const weekend = 'Fri 18:00 - Mon 06:00 Europe/Berlin'
  t.equal(endAt(weekend, '2026-11-27T16:59:59Z'), null)
  t.equal(endAt(weekend, '2026-11-27T17:00:00Z'), '2026-11-30T05:00')
  t.equal(endAt(weekend, '2026-11-30T04:59:59Z'), '2026-11-30T05:00')
  t.equal(endAt(weekend, '2026-11-30T05:00:00Z'), null)
  const all = 'Mon 06:00 - Mon 05:59 Europe/Berlin'
  t.equal(endAt(all, '2026-11-30T04:58:00Z'), '2026-11-30T04:59')
  t.equal(endAt(all, '2026-11-30T04:59:00Z'), null)
  const single = '2026-12-20T00:00/2027-01-04T00:00 America/New_York'
  t.equal(endAt(single, '2026-12-20T04:59:00Z'), null)
  t.equal(endAt(single, '2026-12-20T05:00:00Z'), '2027-01-04T05:00')
  t.end()
})

t.test('a night over each change of clocks', (t) => {
  const night = '22:00 - 06:00 Europe/Berlin'
  t.equal(endAt(night, '2026-03-28T21:00:00Z'), '2026-03-29T04:00', 'seven hours')
  t.equal(endAt(night, '2026-03-28T20:59:00Z'), null)
  t.equal(endAt(night, '2026-10-24T20:00:00Z'), '2026-10-25T05:00', 'nine hours')
  t.equal(endAt(night, '2026-10-24T19:59:00Z'), null)
  t.equal(endAt('02:30 - 04:00 Europe/Berlin', '2026-03-29T00:59:00Z'), null)
  t.equal(endAt('02:30 - 04:00 Europe/Berlin', '2026-03-29T01:00:00Z'), '2026-03-29T02:00', '02:30 does not exist')
  t.equal(endAt('00:30 - 02:30 Europe/Berlin', '2026-03-29T00:59:00Z'), '2026-03-29T01:00')
  t.equal(endAt('01:00 - 02:30 Europe/Berlin', '2026-10-25T01:15:00Z'), '2026-10-25T01:30', 'the second 02:30')
  t.equal(endAt('01:00 - 02:30 Europe/Berlin', '2026-10-25T01:30:00Z'), null)
  t.equal(endAt('02:30 - 05:00 Europe/Berlin', '2026-10-25T00:30:00Z'), '2026-10-25T04:00', 'the first 02:30')
  t.equal(endAt('23:30 - 00:30 America/Santiago', '2026-09-06T04:00:00Z'), null, 'midnight does not exist')
  t.end()
})

t.test('windows that follow each other are one freeze', (t) => {
  const both = 'Fri 18:00 - Sun 00:00 UTC; Sat 20:00 - Mon 06:00 UTC; 2026-11-30T06:00/2026-12-01T12:00 UTC'
  t.equal(endAt(both, '2026-11-27T19:00:00Z'), '2026-12-01T12:00')
  t.equal(endAt('00:00 - 12:00 UTC; 12:00 - 00:00 UTC', '2026-11-27T19:00:00Z'), 'never')
  t.equal(sayLocal('Asia/Kolkata', Date.parse('2026-11-27T19:00:00Z')), 'Sat 2026-11-28 00:30 Asia/Kolkata')
  t.end()
})

t.test('over a year, a freeze is in force when the clocks of the zone say so', (t) => {
  const start = Date.parse('2026-01-01T00:00:00Z')
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Pacific/Chatham']
  let wrong = 0
  for (let run = 0; run < runsOf(2000); run++) {
    const zone = zones[run % zones.length]!
    const instant = start + run * 22 * 3_600_000 + (run % 60) * 60_000
    const [hour, minute] = new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit' })
      .format(instant)
      .split(':')
      .map(Number)
    // No clock of these zones changes between 05:00 and 21:00.
    const clock = hour! * 60 + minute!
    if (clock < 300 || clock >= 1260) continue
    const isFrozen = endAt(`09:15 - 17:45 ${zone}`, new Date(instant).toISOString()) !== null
    if (isFrozen !== (clock >= 555 && clock < 1065)) wrong += 1
  }
  t.equal(wrong, 0)
  t.end()
})
