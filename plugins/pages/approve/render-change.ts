import { html } from 'ghtml'
import type {
  ShownCall,
  ShownEffect,
  ShownEvidence,
  ShownField,
  ShownObject,
  ShownReference,
  ShownTraffic,
} from '../../../schemas/approvals.js'
import { EFFECT_MEANINGS } from '../../../schemas/policy-changes.js'
import { fit, isCut, leftOutMark, type Room } from './fit.js'
import { renderQuotation, renderSentence } from './render-sentence.js'
import { isSentence, renderValue } from './render-value.js'
import { showStored } from './show-stored.js'

/**
 * The limits of the page. MOST_OBJECTS is the maximum number of objects. BYTES contains maximum sizes in bytes of HTML:
 * of one field, of all fields of an object, of all parts of an object, of all objects together, and of any other list.
 */
const MOST_OBJECTS = 200
const BYTES = { field: 24_000, fields: 64_000, parts: 128_000, objects: 480_000, list: 32_000 }
/** If a change has more objects than this, only those that open traffic or may open traffic are shown unfolded. */
const MOST_UNFOLDED = 20
const LONGEST_SENTENCE = 4000
const LONGEST_NAME = 300
const MOST_KINDS = 12

/** The groups of objects in the order in which a person should read them, riskiest first. */
const EFFECTS: readonly { effect: ShownEffect | undefined; title: string; badge: string; kind: string }[] = [
  { effect: 'widening', title: 'Opens more', badge: '▲ opens more', kind: 'bad' },
  { effect: 'mixed', title: 'Opens some and closes some', badge: '▲▼ opens and closes', kind: 'bad' },
  { effect: 'undecided', title: 'Effect not known', badge: '? effect not known', kind: 'warning' },
  { effect: undefined, title: 'Other changes', badge: '', kind: 'plain' },
  { effect: 'narrowing', title: 'Closes more', badge: '▼ closes more', kind: 'good' },
  { effect: 'neutral', title: 'Same traffic as before', badge: '= same traffic', kind: 'plain' },
]
const MEANINGS: Readonly<Record<ShownEffect, string>> = {
  ...EFFECT_MEANINGS,
  undecided: 'may permit more traffic or less: this server cannot tell',
}
const DEEDS: Readonly<Record<ShownObject['change'], string>> = {
  create: 'New',
  update: 'Changed',
  delete: 'Deleted',
  unknown: 'Touched',
}

/**
 * Renders the part of the page that shows what a call would change. It shows everything that was stored about the
 * change, up to the limits; where something is left out, there is a mark.
 */
export function renderChange(shown: ShownCall): string {
  const folds = shown.objects.length > MOST_UNFOLDED
  const room: Room = { left: BYTES.objects }
  const ordered = EFFECTS.map(({ effect, ...words }) => ({
    ...words,
    effect,
    objects: shown.objects.filter((object) => object.effect === effect),
  })).filter(({ objects }) => objects.length > 0)
  let count = 0
  const groups = ordered.map(({ effect, title, objects }) => {
    const { html: rendered, omitted } = fit(
      objects,
      room,
      (object) => renderObject(object, ++count, folds),
      MOST_OBJECTS - count,
    )
    const meaning = effect === undefined ? '' : html`<p class="hint">Each ${MEANINGS[effect]}.</p>`
    const isOnly = ordered.length === 1 && effect === undefined
    const heading = html`<h3>${isOnly ? 'Objects' : title} <span class="count">${objects.length}</span></h3>`
    return `${heading}${meaning}${rendered}${leftOut(omitted, 'more of these')}`
  })
  const left = shown.objects_total - count
  return html`<section class="card" aria-labelledby="change">
    <h2 id="change">What would change</h2>
    !${renderWarnings(shown.warnings)} !${renderTotals(shown)}
    !${renderCut(shown, { count, left, isCutInside: isCut(groups.join('')) })} !${groups.join('')}
    !${renderReferred(shown)} !${renderDependencies(shown)} !${renderNotIncluded(shown)} !${renderFacts(shown)}
  </section>`
}

function renderWarnings(warnings: readonly string[]): string {
  if (warnings.length === 0) return ''
  const { html: items, omitted } = fit(warnings, { left: BYTES.list }, renderItem)
  return html`<div class="warning notice">
    <h3>Look at these first</h3>
    <ul>
      !${items}
    </ul>
    !${leftOut(omitted, 'more')}
  </div>`
}

const renderItem = (sentence: string) => html`<li>!${renderSentence(sentence, LONGEST_SENTENCE)}</li>`

function renderTotals(shown: ShownCall): string {
  const { workloads_affected: workloads, is_rough: isRough, draft, effect, evidence } = shown
  const total = shown.objects_total
  const facts: [string, string][] = [
    ...(effect === undefined ? [] : [['Effect', renderBadge(effect)] as [string, string]]),
    ...(total === 0 ? [] : [['Objects', countKinds(shown)] as [string, string]]),
    ...(workloads === undefined
      ? []
      : [
          [
            'Workloads affected',
            workloads === null ? 'The PCE did not say.' : `${isRough === true ? 'about ' : ''}${workloads}`,
          ] as [string, string],
        ]),
    ...(draft === undefined ? [] : [['Draft', renderDraft(draft)] as [string, string]]),
    ...(evidence === undefined ? [] : [['Observed traffic', renderReading(evidence)] as [string, string]]),
  ]
  return facts.length === 0
    ? ''
    : html`<dl>
        !${facts
          .map(
            ([name, fact]) =>
              html`<dt>${name}</dt>
                <dd>!${fact}</dd>`,
          )
          .join('')}
      </dl>`
}

/** Counts the objects of each kind. If not all objects were stored, gives only their total number. */
function countKinds({ objects, objects_total: total }: ShownCall): string {
  if (objects.length < total) return String(total)
  const counts = new Map<string, number>()
  for (const { kind, change } of objects) {
    const word = `${kind} ${DEEDS[change].toLowerCase()}`
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const listed = [...counts].slice(0, MOST_KINDS).map(([word, count]) => `${count} × ${showStored(word, LONGEST_NAME)}`)
  const more = counts.size > listed.length ? ' …' : ''
  return html`${counts.size > 1 ? `${total}: ` : ''}${listed.join(', ')}${more}`
}

function renderDraft({ first_edit: first, last_edit: last, by }: NonNullable<ShownCall['draft']>): string {
  const when =
    first === last ? html`edited ${showTime(first)}` : html`edited from ${showTime(first)} to ${showTime(last)}`
  const names = by.slice(0, 10).map((name) => renderQuotation(showStored(name, LONGEST_NAME)))
  const authors =
    names.length === 0 ? '' : ` by ${names.join(', ')}${by.length > 10 ? ` and ${by.length - 10} more` : ''}`
  return when + authors
}

const renderReading = ({ read_at: at, says }: NonNullable<ShownCall['evidence']>): string =>
  html`!${renderSentence(says, LONGEST_SENTENCE)} <span class="hint">Looked up ${showTime(at)}.</span>`

const WHEN = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })

/** Formats a time of the PCE. A text that is not a time stays as it is. */
function showTime(time: string): string {
  const at = Date.parse(time)
  return Number.isNaN(at) ? showStored(time, LONGEST_NAME) : `${WHEN.format(at)} UTC`
}

function renderBadge(effect: ShownEffect): string {
  const { badge, kind } = EFFECTS.find((one) => one.effect === effect)!
  return html`<span class="badge ${kind}" title="${MEANINGS[effect]}">${badge}</span>`
}

/** Renders a warning if the page does not show the whole change. */
function renderCut(
  { truncated }: ShownCall,
  { count, left, isCutInside }: { count: number; left: number; isCutInside: boolean },
): string {
  const said = [
    left > 0 ? `Of ${count + left} objects ${count} are shown here; those that open more come first.` : '',
    truncated === true ? 'It was too large to be kept in full. Marks show where something is left out.' : '',
    left === 0 && truncated !== true && isCutInside
      ? 'Some details of the objects are not shown. Marks show where something is left out.'
      : '',
  ].filter(Boolean)
  if (said.length === 0) return ''
  return html`<div class="bad notice">
    <h3>This is not all of it</h3>
    <p>${said.join(' ')} Approving approves the whole.</p>
  </div>`
}

function renderObject(object: ShownObject, at: number, folds: boolean): string {
  const { effect } = object
  const isOpen = !folds || effect === 'widening' || effect === 'mixed' || effect === 'undecided'
  return html`<details class="object ${kindOf(effect)}" id="object-${at}" !${isOpen ? 'open' : ''}>
    <summary>
      <h4>!${renderTitle(object)}</h4>
    </summary>
    !${renderInside(object, BYTES.parts, renderPart)}
  </details>`
}

const renderPart = (part: ShownObject): string =>
  html`<li class="${kindOf(part.effect)}">
    <h5>!${renderTitle(part)}</h5>
    !${renderInside(part, BYTES.list, renderBarePart)}
  </li>`

/**
 * Renders everything below an object's title. `renderBelow` renders one part of the object; all its parts together may
 * take `bytes` bytes.
 */
function renderInside(object: ShownObject, bytes: number, renderBelow: (part: ShownObject) => string): string {
  const inside = fit(object.fields, { left: BYTES.fields }, renderField)
  const below = fit(object.parts ?? [], { left: bytes }, renderBelow)
  return html`!${renderNotes(object)} !${renderFieldList(inside.html)} !${leftOut(inside.omitted, 'more fields')}
  !${
    below.html === ''
      ? ''
      : html`<ul class="parts">
          !${below.html}
        </ul>`
  }
  !${leftOut(below.omitted, 'more parts')}`
}

/**
 * Renders the title and the fields of a part, but not the parts nested in it. It is used for anything nested more
 * deeply than a rule of a rule set.
 */
function renderBarePart(part: ShownObject): string {
  const inside = fit(part.fields, { left: BYTES.field }, renderField)
  return html`<li>
    !${renderTitle(part)} !${renderFieldList(inside.html)} !${leftOut(inside.omitted, 'more fields')}
  </li>`
}

const kindOf = (effect: ShownEffect | undefined) => EFFECTS.find((one) => one.effect === effect)?.kind ?? 'plain'

const renderTitle = ({ kind, name, change, effect }: ShownObject) =>
  html`<span class="deed"
      ><span class="${change}">${DEEDS[change] ?? 'Touched'}</span> ${showStored(kind, LONGEST_NAME)}</span
    >
    !${name === undefined || name === '' ? '' : renderQuotation(showStored(name, 1000))}
    !${effect === undefined ? '' : renderBadge(effect)}`

function renderNotes(object: ShownObject): string {
  const { href, updated_at: at, updated_by: by, evidence, effect_note: note, warnings = [], note: left } = object
  const edited =
    at === undefined && by === undefined
      ? ''
      : html`edited${at === undefined ? '' : ` ${showTime(at)}`}!${by === undefined ? '' : html` by !${renderQuotation(showStored(by, LONGEST_NAME))}`}`
  const where = href === undefined ? '' : html`<code class="href">${showStored(href, 1000)}</code>`
  const line = [where, edited].filter(Boolean).join(' · ')
  const listed = fit(warnings, { left: BYTES.list }, renderItem)
  return [
    line === '' ? '' : html`<p class="hint">!${line}</p>`,
    evidence === undefined ? '' : renderEvidence(evidence),
    note === undefined ? '' : html`<p>!${renderSentence(note, LONGEST_SENTENCE)}</p>`,
    listed.html === ''
      ? ''
      : html`<ul class="look">
          !${listed.html}
        </ul>`,
    leftOut(listed.omitted, 'more to look at'),
    left === undefined ? '' : html`<p class="hint">!${renderSentence(left, LONGEST_SENTENCE)}</p>`,
  ].join('')
}

/** Renders what observed traffic says about the change of an object, including the busiest traffic. */
function renderEvidence({ says, traffic = [], traffic_total: total = traffic.length }: ShownEvidence): string {
  const { html: items, omitted } = fit(traffic, { left: BYTES.list }, renderTraffic)
  const more = total - traffic.length + omitted
  // Traffic that is left out here is no part of the change, so there is no mark that would make the page say that
  // something is missing.
  return html`<p class="evidence"><b>Observed traffic:</b> !${renderSentence(says, LONGEST_SENTENCE)}</p>
    !${items === '' ? '' : `<ul>${items}</ul>`}
    !${more > 0 ? html`<p class="hint">… and ${more} less busy ${more === 1 ? 'pair' : 'pairs'}.</p>` : ''}`
}

function renderTraffic(one: ShownTraffic): string {
  const { source, destination, ports, connections, effect, last_seen: lastSeen } = one
  const [from, to] = [source, destination].map((end) => renderQuotation(showStored(end, LONGEST_NAME)))
  const on = ports.length === 0 ? '' : ` on ${ports.join(', ')}`
  const seen = lastSeen === undefined ? '' : `, last seen ${lastSeen}`
  const count = `${connections} ${connections === 1 ? 'connection' : 'connections'}`
  return html`<li>!${from} → !${to}${showStored(`${on}: ${count} ${effect}${seen}.`, LONGEST_SENTENCE)}</li>`
}

const renderFieldList = (fields: string) => (fields === '' ? '' : html`<dl class="changes">!${fields}</dl>`)

/**
 * Renders a field with its old (−) and new (+) value. If both values are lists, the entries that both contain are
 * counted and folded.
 */
function renderField({ path, before, after }: ShownField): string {
  return html`<div>
    <dt>${showStored(path, LONGEST_NAME)}</dt>
    !${Array.isArray(before) && Array.isArray(after) ? renderLists(before, after) : renderSides(before, after)}
  </div>`
}

function renderSides(before: unknown, after: unknown): string {
  const room: Room = { left: BYTES.field }
  const side = (mark: 'goes' | 'comes', value: unknown): string => {
    if (value === undefined) return ''
    if (!Array.isArray(value) || value.length === 0) return renderLine(mark, value)
    return renderLines(mark, value, room)
  }
  return side('goes', before) + side('comes', after)
}

function renderLists(before: readonly unknown[], after: readonly unknown[]): string {
  const keyed = (list: readonly unknown[]) => list.map((item) => JSON.stringify(item))
  const [ours, theirs] = [new Set(keyed(after)), new Set(keyed(before))]
  const gone = before.filter((item) => !ours.has(JSON.stringify(item)))
  const come = after.filter((item) => !theirs.has(JSON.stringify(item)))
  const stays = before.filter((item) => ours.has(JSON.stringify(item)))
  const room: Room = { left: BYTES.field }
  const lines = [
    before.length === 0 ? renderLine('goes', null) : renderLines('goes', gone, room),
    after.length === 0 ? renderLine('comes', null) : renderLines('comes', come, room),
  ]
  if (stays.length === 0) return lines.join('')
  const kept = fit(stays, { left: BYTES.field / 2 }, (item) => html`<li>!${renderValue(item)}</li>`)
  return html`!${lines.join('')}
    <dd class="stays">
      <details>
        <summary>${stays.length} ${stays.length === 1 ? 'entry stays' : 'entries stay'}</summary>
        <ul>
          !${kept.html}
        </ul>
        !${leftOut(kept.omitted, 'more')}
      </details>
    </dd>`
}

function renderLines(mark: 'goes' | 'comes', items: readonly unknown[], room: Room): string {
  const { html: lines, omitted } = fit(items, room, (item) => renderLine(mark, item))
  return omitted === 0
    ? lines
    : lines + html`<dd class="stays">!${leftOut(omitted, mark === 'goes' ? 'more that go' : 'more that come')}</dd>`
}

/**
 * Renders one value with a sign (−, +) for sighted readers, and with hidden words that say the same for screen readers.
 */
const renderLine = (mark: 'goes' | 'comes', value: unknown) =>
  html`<dd class="${mark}">
    <span class="sign" aria-hidden="true">${mark === 'goes' ? '−' : '+'}</span
    ><span class="unseen">${mark === 'goes' ? 'before: ' : 'after: '}</span>!${renderValue(value)}
  </dd>`

/** Renders the objects that the change refers to by href, each with its content. */
function renderReferred(shown: ShownCall): string {
  const { referred = [], referred_unread: unread = 0, referred_left_out: leftAway = 0 } = shown
  const more = unread + leftAway
  if (referred.length + more === 0) return ''
  const isAllRead = unread === 0 && referred.every(({ content }) => content !== undefined)
  const { html: items, omitted } = fit(referred, { left: BYTES.fields }, renderReference)
  return html`<h3>What the hrefs stand for <span class="count">${referred.length + more}</span></h3>
    <p class="hint">
      If one of these changes after the decision, the call does not run and is asked about again.
      ${isAllRead ? '' : 'That does not hold for those that were not read: a change of them is not noticed.'}
    </p>
    <ul>
      !${items}
    </ul>
    !${leftOut(omitted + more, 'more')}`
}

function renderReference({ kind, name, href, content = {}, note }: ShownReference): string {
  const { html: fields, omitted } = fit(
    Object.entries(content),
    { left: BYTES.field },
    ([field, value]) =>
      html`<dt>${showStored(field, LONGEST_NAME)}</dt>
        <dd>!${renderValueList(value)}</dd>`,
  )
  return html`<li>
    ${showStored(kind, LONGEST_NAME)} !${renderName(name, href)}
    !${note === undefined ? '' : html`<p class="hint">${showStored(note, LONGEST_SENTENCE)}</p>`}
    !${fields === '' ? '' : html`<dl class="facts">!${fields}</dl>`} !${leftOut(omitted, 'more fields')}
  </li>`
}

function renderDependencies({ dependencies = [] }: ShownCall): string {
  if (dependencies.length === 0) return ''
  const { html: items, omitted } = fit(dependencies, { left: BYTES.list }, ({ kind, name, href, required_by: by }) => {
    const needing = by.slice(0, 5).map((one) => renderQuotation(showStored(one, LONGEST_NAME)))
    const more = by.length > needing.length ? ` and ${by.length - needing.length} more` : ''
    return html`<li>
      ${showStored(kind, LONGEST_NAME)} !${renderName(name, href)}
      <span class="hint">!${needing.length === 0 ? '' : `needed by ${needing.join(', ')}${more}`}</span>
    </li>`
  })
  return html`<h3>Goes along, because what was named needs it <span class="count">${dependencies.length}</span></h3>
    <ul>
      !${items}
    </ul>
    !${leftOut(omitted, 'more')}`
}

function renderNotIncluded({ not_included: rest }: ShownCall): string {
  if (rest === undefined || rest.total === 0) return ''
  const { html: items, omitted } = fit(
    rest.objects,
    { left: BYTES.list },
    ({ kind, name, href, change }) =>
      html`<li>${DEEDS[change] ?? 'Touched'} ${showStored(kind, LONGEST_NAME)} !${renderName(name, href)}</li>`,
  )
  const missing = rest.total - rest.objects.length + omitted
  return html`<h3>Pending as well, but no part of this <span class="count">${rest.total}</span></h3>
    <p class="hint">These stay drafts, whatever you decide here.</p>
    <ul>
      !${items}
    </ul>
    !${leftOut(missing, 'more')}`
}

const renderName = (name: string | undefined, href: string | undefined) =>
  [
    name === undefined || name === '' ? '' : renderQuotation(showStored(name, 1000)),
    href === undefined ? '' : html`<code class="href">${showStored(href, 1000)}</code>`,
  ].join(' ')

/** Renders the facts that a tool states in its own words, which is usual for tools that have no objects to show. */
function renderFacts({ facts = {} }: ShownCall): string {
  const entries = Object.entries(facts)
  if (entries.length === 0) return ''
  const { html: rendered, omitted } = fit(
    entries,
    { left: BYTES.list },
    ([name, value]) =>
      html`<dt>${showStored(name, LONGEST_NAME).replaceAll('_', ' ')}</dt>
        <dd>!${isSentence(name, value) ? renderSentence(value, LONGEST_SENTENCE) : renderValueList(value)}</dd>`,
  )
  return html`<h3>In the words of the tool</h3>
    <dl class="facts">!${rendered}</dl>
    !${leftOut(omitted, 'more facts')}`
}

function renderValueList(value: unknown): string {
  if (!Array.isArray(value) || value.length === 0) return renderValue(value)
  const { html: items, omitted } = fit(value, { left: BYTES.field }, (item) => html`<li>!${renderValue(item)}</li>`)
  return html`<ul>
      !${items}
    </ul>
    !${leftOut(omitted, 'more')}`
}

const leftOut = (omitted: number, what: string): string =>
  omitted > 0 ? html`<p class="hint">!${leftOutMark(`… and ${omitted} ${what}, not shown here.`)}</p>` : ''
