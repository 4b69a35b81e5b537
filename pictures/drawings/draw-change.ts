import { partsOf, type ChangedObject, type ChangeFacts, type FieldDiff } from '../facts/change-facts.js'
import type { ShownEffect } from '../../schemas/approvals.js'
import { fragment, type Markup } from '../markup.js'
import { countOf, type Drawing, type LegendEntry, type Picture, type Table } from '../picture.js'
import { arrowHeads, box, element, group, headOf, label, sample } from './shapes.js'

const PAD = 16
const WIDTH = { field: 170, side: 400, gap: 20, end: 14 }
const TOTAL = PAD * 2 + WIDTH.field + 2 * WIDTH.side + WIDTH.gap + WIDTH.end
const LINE = 17
const HEAD = 38
const RULE_HEAD = 38
/**
 * Maximum number of items of each type that are drawn. If more exist, the drawing says how many are missing. It does
 * not point to a table, because the drawing may be shown without one.
 */
const MOST = { objects: 25, rules: 12, lines: 6, fields: 8, remarks: 3 }

const EFFECTS: Readonly<Record<ShownEffect, { sign: string; words: string }>> = {
  widening: { sign: '▲', words: 'opens more' },
  mixed: { sign: '▲▼', words: 'opens some, closes some' },
  undecided: { sign: '?', words: 'effect not known' },
  narrowing: { sign: '▼', words: 'closes more' },
  neutral: { sign: '=', words: 'same traffic' },
}
const DEEDS: Readonly<Record<ChangedObject['change'], string>> = {
  create: '+ new',
  update: '~ changed',
  delete: '− deleted',
  unknown: 'touched',
}
/**
 * The fields that describe the traffic of a rule. A new or deleted rule with these fields is drawn as a flow, without
 * its other fields.
 */
const FLOW = { from: 'consumers', to: 'providers', by: ['ingress_services', 'services'] }

/**
 * Draws what provisioning would change: the active state on the left, the new state on the right. Changes that permit
 * more traffic are marked.
 */
export function drawChange(facts: ChangeFacts, { title = 'Policy change' }: { title?: string } = {}): Picture {
  const { objects, notes, warnings } = facts
  const drawn = objects.slice(0, MOST.objects)
  const effects = new Set(objects.flatMap((object) => [object, ...object.rules].flatMap(({ effect }) => effect ?? [])))
  return {
    kind: 'change',
    title,
    notes: [
      ...notes,
      ...(drawn.length < objects.length
        ? [`The first ${drawn.length} of ${countOf(objects.length, 'object')} are drawn.`]
        : []),
    ],
    warnings,
    views: [{ name: 'Change', drawing: drawObjects(drawn) }],
    legend: (Object.keys(EFFECTS) as ShownEffect[]).filter((effect) => effects.has(effect)).map(legendOf),
    tables: [tableOf(objects)],
  }
}

const legendOf = (effect: ShownEffect): LegendEntry => ({
  sample: sample(
    box({ x: 1, y: 0, width: 5, height: 12 }, `bar ${effect}`, 1),
    element('text', { class: `own strong ${effect}`, x: 10, y: 10 }, EFFECTS[effect].sign),
  ),
  text: EFFECTS[effect].words,
})

function tableOf(objects: readonly ChangedObject[]): Table {
  const rowsOf = (object: ChangedObject, part: ChangedObject | null) => {
    const { change, effect, fields, remarks } = part ?? object
    const start = [
      `${object.kind} ${object.name}`,
      part === null ? '' : `${part.kind} ${part.name}`.trim(),
      DEEDS[change],
      effect === undefined ? '' : EFFECTS[effect].words,
    ]
    const diffs = fields.map(({ field, before, after }) => ({
      cells: [...start, field, partsOf(before).join(', '), partsOf(after).join(', ')],
    }))
    const said = remarks.map((remark) => ({ cells: [...start, 'note', '', remark] }))
    const rows = [...said, ...diffs]
    return rows.length === 0 ? [{ cells: [...start, '', '', ''] }] : rows
  }
  return {
    caption: 'What would change',
    columns: ['Object', 'Part', 'Change', 'Traffic', 'Field', 'In force', 'After'].map((name) => ({ name })),
    rows: objects.flatMap((object) =>
      [rowsOf(object, null), ...object.rules.map((rule) => rowsOf(object, rule))].flat(),
    ),
  }
}

function drawObjects(objects: readonly ChangedObject[]): Drawing {
  let y = PAD
  const left = PAD + WIDTH.field
  const parts: Markup[] = [
    label('In force today', { x: left, y: y + 8, width: WIDTH.side, look: 'soft strong' }),
    label('After provisioning', { x: left + WIDTH.side + WIDTH.gap, y: y + 8, width: WIDTH.side, look: 'soft strong' }),
  ]
  y += 26
  for (const object of objects) {
    const { content, height } = drawObject(object, y)
    parts.push(content)
    y += height + 14
  }
  if (objects.length === 0) {
    parts.push(label('Nothing would change.', { x: left, y: y + 10, width: WIDTH.side, look: 'soft' }))
    y += 30
  }
  return { width: TOTAL, height: y + PAD - 14, content: fragment([arrowHeads('c0'), ...parts]) }
}

interface Part {
  content: Markup
  height: number
}

function drawObject(object: ChangedObject, top: number): Part {
  let y = top + HEAD
  const parts: Markup[] = []
  const add = ({ content, height }: Part) => {
    parts.push(content)
    y += height
  }
  for (const remark of object.remarks.slice(0, MOST.remarks)) add(drawRemark(remark, y))
  const unsaid = object.remarks.length - MOST.remarks
  if (unsaid > 0) add(drawRemark(`${countOf(unsaid, 'more remark')}: not drawn`, y))
  add(drawFields(object.fields, y))
  for (const rule of object.rules.slice(0, MOST.rules)) add(drawRule(rule, y))
  const omitted = object.rules.length - MOST.rules
  if (omitted > 0) add(drawRemark(`${countOf(omitted, 'more rule')}: not drawn`, y))
  const height = y - top + 8
  const { kind, name, change, effect } = object
  const right = TOTAL - PAD - WIDTH.end
  return {
    height,
    content: group(
      { class: 'node', 'data-name': name },
      box({ x: PAD, y: top, width: TOTAL - 2 * PAD, height }, 'panel', 8),
      box({ x: PAD, y: top, width: 7, height }, `bar ${effect ?? 'unknown'}`, 2),
      label(`${DEEDS[change]} ${kind}`, { x: PAD + 20, y: top + 19, width: 160, look: 'soft' }),
      label(name, { x: PAD + 190, y: top + 19, width: 440, size: 14, look: 'strong title' }),
      ...(effect === undefined
        ? []
        : [
            label(`${EFFECTS[effect].sign} ${EFFECTS[effect].words}`, {
              x: right,
              y: top + 19,
              width: 220,
              look: `own strong end ${effect}`,
            }),
          ]),
      ...parts,
    ),
  }
}

const drawRemark = (remark: string, y: number): Part => ({
  height: LINE,
  content: label(remark, { x: PAD + 20, y: y + 6, width: TOTAL - 2 * PAD - 40, size: 10.5, look: 'soft small' }),
})

function drawRule(rule: ChangedObject, top: number): Part {
  const { kind, name, change, effect, fields } = rule
  const flow = flowOf(rule)
  const first = top + 8
  const named = name === '' || flow !== null ? 0 : LINE + 2
  const inner: Part =
    flow === null
      ? drawFields(fields, first + (named === 0 ? 0 : RULE_HEAD) + (named === 0 ? 2 * LINE : 0))
      : drawFlow(flow, { isNew: change === 'create', isDeny: kind.includes('deny') }, first)
  const height = Math.max(2 * LINE + 6, inner.height + (flow === null ? (named === 0 ? 2 * LINE : RULE_HEAD) : 0)) + 10
  const words = effect === undefined ? null : `${EFFECTS[effect].sign} ${EFFECTS[effect].words}`
  return {
    height,
    content: fragment([
      element('path', { class: 'rule', d: `M${PAD + 16} ${top + 1}H${TOTAL - PAD - WIDTH.end}` }),
      box({ x: PAD + 12, y: top + 5, width: 4, height: height - 8 }, `bar ${effect ?? 'unknown'}`, 2),
      label(`${DEEDS[change]} ${kind}`, { x: PAD + 24, y: first + 7, width: WIDTH.field - 28 }),
      ...(words === null
        ? []
        : [
            label(words, {
              x: PAD + 24,
              y: first + 7 + LINE,
              width: WIDTH.field - 28,
              size: 10.5,
              look: `own strong small ${effect}`,
            }),
          ]),
      ...(named === 0
        ? []
        : [label(name, { x: PAD + WIDTH.field, y: first + 7, width: 2 * WIDTH.side, look: 'strong' })]),
      inner.content,
    ]),
  }
}

interface Flow {
  from: string[]
  to: string[]
  by: string[]
}

/** Describes a new or deleted rule as a flow from consumers to providers; null for any other change. */
function flowOf({ change, fields }: ChangedObject): Flow | null {
  if (change !== 'create' && change !== 'delete') return null
  const side = change === 'create' ? 'after' : 'before'
  const valueOf = (names: readonly string[]) => partsOf(fields.find(({ field }) => names.includes(field))?.[side])
  const flow = { from: valueOf([FLOW.from]), to: valueOf([FLOW.to]), by: valueOf(FLOW.by) }
  return flow.from.length > 0 && flow.to.length > 0 ? flow : null
}

const BOX = 140

function drawFlow({ from, to, by }: Flow, { isNew, isDeny }: { isNew: boolean; isDeny: boolean }, top: number): Part {
  const decision = !isNew ? 'unknown' : isDeny ? 'blocked' : 'allowed'
  const x = PAD + WIDTH.field + (isNew ? WIDTH.side + WIDTH.gap : 0)
  const other = PAD + WIDTH.field + (isNew ? 0 : WIDTH.side + WIDTH.gap)
  const lines = Math.max(...[from, to].map((list) => Math.min(list.length, MOST.lines)), Math.min(by.length, 2))
  const height = lines * LINE + 10
  const middle = top + height / 2
  const end = x + WIDTH.side - BOX
  const look = isNew ? '' : 'struck soft'
  return {
    height,
    content: fragment([
      label(isNew ? 'not there' : 'gone', { x: other, y: middle, width: WIDTH.side, look: 'soft' }),
      drawList(from, { x, y: top, height, look }),
      group(
        { class: `edge ${decision}`, 'marker-end': isDeny ? undefined : headOf('c0', decision) },
        element('path', { 'stroke-width': 2, d: `M${x + BOX} ${Math.round(middle)}H${end - (isDeny ? 20 : 0)}` }),
      ),
      ...(isDeny
        ? [label('✕', { x: end - 10, y: middle, width: 20, size: 14, look: `own strong middle ${decision}` })]
        : []),
      label(by.slice(0, 3).join(', ') + (by.length > 3 ? ` +${by.length - 3}` : ''), {
        x: x + BOX + (WIDTH.side - 2 * BOX) / 2,
        y: middle - 9,
        width: WIDTH.side - 2 * BOX - 6,
        size: 10.5,
        look: `small middle ${look}`,
      }),
      drawList(to, { x: end, y: top, height, look }),
    ]),
  }
}

function drawList(
  texts: readonly string[],
  { x, y, height, look }: { x: number; y: number; height: number; look: string },
): Markup {
  const shown = cutLines(texts)
  return fragment([
    box({ x, y, width: BOX, height }, 'box', 5),
    ...shown.map((text, at) =>
      label(text, {
        x: x + BOX / 2,
        y: y + height / 2 + (at - (shown.length - 1) / 2) * LINE,
        width: BOX - 12,
        look: `middle ${look}`,
      }),
    ),
  ])
}

function cutLines(texts: readonly string[]): string[] {
  if (texts.length <= MOST.lines) return [...texts]
  return [...texts.slice(0, MOST.lines - 1), `and ${texts.length - MOST.lines + 1} more`]
}

/** Draws fields before and after the change, and marks values that are removed or added. */
function drawFields(fields: readonly FieldDiff[], top: number): Part {
  let y = top
  const parts: Markup[] = []
  for (const { field, before, after } of fields.slice(0, MOST.fields)) {
    const [was, is] = [partsOf(before), partsOf(after)]
    const sides = [markLines(was, is, '−'), markLines(is, was, '+')]
    const height = Math.max(1, ...sides.map((lines) => lines.length)) * LINE
    const left = PAD + WIDTH.field
    parts.push(
      label(field, { x: PAD + 24, y: y + 8, width: WIDTH.field - 30, size: 10.5, look: 'soft small' }),
      ...sides.flatMap((lines, side) =>
        lines.map(({ text, look }, at) =>
          label(text, { x: left + side * (WIDTH.side + WIDTH.gap), y: y + 8 + at * LINE, width: WIDTH.side - 8, look }),
        ),
      ),
    )
    y += height + 4
  }
  const omitted = fields.length - MOST.fields
  if (omitted > 0) {
    parts.push(
      label(`${countOf(omitted, 'more field')}: not drawn`, {
        x: PAD + 24,
        y: y + 8,
        width: 300,
        size: 10.5,
        look: 'soft small',
      }),
    )
    y += LINE
  }
  return { content: fragment(parts), height: y - top }
}

/**
 * Returns the lines that show one version of a field: the value before or after the change. Entries that the other
 * version lacks are marked and come first.
 */
function markLines(own: readonly string[], other: readonly string[], sign: string): { text: string; look: string }[] {
  const there = new Set(other)
  const changed = own.filter((text) => !there.has(text))
  const stays = own.filter((text) => there.has(text))
  const all = [
    ...changed.map((text) => ({ text: `${sign} ${text}`, look: `strong ${sign === '−' ? 'struck' : ''}`.trim() })),
    ...stays.map((text) => ({ text, look: 'soft' })),
  ]
  if (all.length === 0) return [{ text: '–', look: 'soft' }]
  if (all.length <= MOST.lines) return all
  return [...all.slice(0, MOST.lines - 1), { text: `and ${all.length - MOST.lines + 1} more`, look: 'soft' }]
}
