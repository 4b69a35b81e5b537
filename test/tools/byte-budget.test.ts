/** How answers are measured and cut: bytes as they leave the server, and never so short that a cursor cannot move on. */
import t from 'tap'
import { answerBudget, countRowsThatFit, jsonBytes, rowsWithin, showSections } from '../../tools/answers/byte-budget.js'

const limits = (responseBudgetBytes: number) => ({
  responseBudgetBytes,
  trafficQueryTimeoutSeconds: 600,
  trafficMaxParts: 64,
})

t.test('no configuration makes an answer larger than 800,000 bytes', async (t) => {
  t.same(
    [1, 799_999, 800_000, 800_001, 10 ** 9].map((bytes) => answerBudget(limits(bytes))),
    [1, 799_999, 800_000, 800_000, 800_000],
  )
})

t.test('a size is that of the bytes that leave, escapes and all', async (t) => {
  t.same(
    ['plain', 'größe', '日本', '\u202e'].map((text) => jsonBytes(text)),
    [7, 9, 8, Buffer.byteLength('"⟨U+202E⟩"')],
  )
})

t.test('rows fit by bytes, each with the comma after it', async (t) => {
  for (const text of ['x'.repeat(18), 'ü'.repeat(9)]) {
    const rows = Array.from({ length: 10 }, () => text)
    // 3 bytes for what stands around them, 21 for each.
    const fitting = [23, 24, 65, 66, 86, 87, 212, 213].map((bytes) => countRowsThatFit(rows, 'y', limits(bytes)))
    t.same(fitting, [1, 1, 2, 3, 3, 4, 9, 10], text)
  }
})

t.test('of rows there is always one, however large, and of none there is none', async (t) => {
  const [large, small] = ['x'.repeat(1000), 'x']
  t.equal(countRowsThatFit([large, small], {}, limits(100)), 1)
  t.same(rowsWithin([large, small], 100), [large])
  t.equal(countRowsThatFit([], {}, limits(100)), 0)
  t.same(rowsWithin([], 100), [])
})

t.test('lists fill what is left of the budget, and as many rows as are asked for are shown', async (t) => {
  const row = 'x'.repeat(97) // 100 bytes with quotes and comma
  const list = (length: number) => ({ rows: Array.from({ length }, () => row), total: length })
  const shown = (budget: number, more: object = {}) => {
    const answer = showSections(
      {},
      { few: list(3), many: list(166) },
      { detail: 'standard', limits: limits(budget), hint: (limit, isFull) => `${limit} ${isFull}`, ...more },
    )
    return [answer.few.length, answer.many.length, answer.truncation_note]
  }
  t.same(shown(48_000), [3, 25, '25 false'])
  t.same(shown(48_000, { asked: 40 }), [3, 40, '40 false'])
  t.same(shown(48_000, { asked: 200 }), [3, 166, undefined])
  t.same(shown(10_000, { asked: 200 }), [3, 95, '95 true'])
  t.same(shown(10_000, { detail: 'full' }), [3, 95, '95 true'])
})
