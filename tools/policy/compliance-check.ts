import { AssumesOut, showAssumedBy } from '../../schemas/assumes.js'
import { explainRecorded, RecordedOut, showRecorded } from '../../schemas/recorded-otherwise.js'
import { Type, type Static } from '@sinclair/typebox'
import { Count, Counts, Nullable, StringEnum, Text } from '../../schemas/common.js'
import type { Limits } from '../../schemas/config.js'
import { SectionsInput, SectionsOutput } from '../../schemas/sections.js'
import { CompleteInput } from '../../schemas/traffic-input.js'
import { answerBudget, jsonBytes } from '../answers/byte-budget.js'
import { chooseSections } from '../answers/choose-sections.js'
import { defineTool } from '../define.js'
import { FRAMEWORKS, type FrameworkId } from '../../domain/compliance/frameworks.js'
import { whyNothingKnown, type Assessment, type SourceName } from '../../domain/compliance/facts.js'
import { loadFacts, readExposure } from '../../domain/compliance/load-facts.js'
import {
  FORMULA,
  MOST_EVIDENCE,
  scoreVerdicts,
  STATUSES,
  unassessed,
  type Evidence,
  type CheckVerdict,
} from '../../domain/compliance/verdict.js'
import { noDisagreement } from '../../domain/policy/compare-record.js'
import { Reading } from '../../domain/traffic/read-flows.js'
import { chooseWindow, windowInput } from '../../domain/traffic/traffic-window.js'
import { resolveApplication } from '../../domain/inventory/find-labels.js'

const DEFAULT_DAYS = 30
/** The data that every check needs, because they classify the ends of traffic. */
const ALWAYS: readonly SourceName[] = ['workloads', 'policy', 'ipLists']

const output = Type.Object({
  framework: Text('Name of the framework'),
  resource_uri: Text('Document about the framework and its checks: resources/read'),
  scope: Type.Object(
    { app: Text('app label, or all'), env: Text('env label, or all'), lookback_days: Type.Integer() },
    { description: 'What was assessed' },
  ),
  compliance_score: Nullable(Type.Number({ description: 'Percent, by score_formula; null: no check counts' })),
  score_formula: Text('Formula of compliance_score'),
  summary: Counts('Checks by outcome'),
  workloads_analyzed: Nullable(Count('In scope, managed or not; null: they could not be read')),
  enforcement_modes: Counts('Of managed workloads'),
  findings: Type.Array(
    Type.Object({
      id: Text('Of the control in the framework'),
      name: Type.String(),
      description: Text('What the control asks for'),
      status: StringEnum(STATUSES),
      detail: Text('Why it has this status'),
      looked_at: Text('What was judged'),
      evidence: Type.Optional(
        Type.Record(Type.String(), Type.Unknown(), { description: 'counts, worst flows, workloads, rules' }),
      ),
    }),
    { description: 'One for each check of the framework, or for those that sections names' },
  ),
  evidence_limit: Count('Most entries of a list'),
  recommendation: Text('What to do, by the score'),
  ...RecordedOut,
  ...AssumesOut,
  ...SectionsOutput,
  ...Reading,
})

export default defineTool({
  name: 'compliance-check',
  summary: 'Judge an application, environment or all by a framework, with evidence.',
  effect: 'read',
  reads: 'judged',
  toolset: 'analysis',
  roles: ['reader', 'operator', 'admin'],
  requiresPce: true,
  requiresConfirm: false,
  isHeavy: true,
  input: Type.Object(
    {
      framework: Type.Optional(
        StringEnum(Object.keys(FRAMEWORKS) as FrameworkId[], { default: 'general', description: 'Framework' }),
      ),
      app_name: Type.Optional(Type.String({ minLength: 1, description: 'app label' })),
      env_name: Type.Optional(Type.String({ minLength: 1, description: 'env label' })),
      ...windowInput(DEFAULT_DAYS),
      ...SectionsInput(['findings by their id']),
      ...CompleteInput,
    },
    { additionalProperties: false },
  ),
  output,
  example: { framework: 'pci-dss', app_name: 'payments', env_name: 'prod' },
  async handler(args, ctx): Promise<Static<typeof output>> {
    const { framework: id = 'general' } = args
    const { name, document, checks } = FRAMEWORKS[id]
    const chosen = chooseSections(
      args.sections,
      checks.map((check) => check.id),
    )
    const { window, days } = chooseWindow(ctx.now(), args, DEFAULT_DAYS)
    const named = await resolveApplication(ctx, args)
    const [app = null, env = null] = ['app', 'env'].map((key) => named.find((label) => label.key === key))
    const assessment: Assessment = { app, env, window }
    const needs = new Set([...ALWAYS, ...checks.flatMap(({ evaluate }) => evaluate.needs)])
    const sources = await loadFacts(ctx, assessment, needs)
    const ports = new Set(checks.flatMap(({ evaluate }) => evaluate.ports))
    const { traffic, reading, modes: doubts } = await readExposure(ctx, assessment, sources, ports, args.complete)
    const facts = { assessment, sources: { ...sources, traffic } }
    const nothing = whyNothingKnown(assessment, facts.sources)
    const findings = checks.map(({ evaluate, ...check }) => ({
      ...check,
      ...(nothing === null ? evaluate.judge(facts) : unassessed(evaluate, nothing)),
    }))

    const { workloads } = sources
    const recorded = 'value' in traffic ? traffic.value.recorded : noDisagreement()
    const modes: Record<string, number> = {}
    const known = workloads !== undefined && 'value' in workloads ? workloads.value : null
    for (const { mode } of known ?? []) if (mode !== null) modes[mode] = (modes[mode] ?? 0) + 1
    const { recommendation, ...score } = scoreVerdicts(findings.map(({ status }) => status))
    // Score and summary refer to all checks, including those that are not shown.
    const leftOut = findings.flatMap((finding) => (chosen.has(finding.id) ? [] : [finding.id]))
    return fitEvidence(
      {
        framework: name,
        resource_uri: document,
        scope: { app: app?.value ?? 'all', env: env?.value ?? 'all', lookback_days: days },
        ...score,
        score_formula: FORMULA,
        workloads_analyzed: known?.length ?? null,
        enforcement_modes: modes,
        recommendation: [recommendation, explainRecorded(recorded), ...doubts].filter(Boolean).join(' '),
        ...showRecorded(recorded),
        ...showAssumedBy(findings),
        ...(leftOut.length > 0 && { sections_left_out: leftOut }),
        ...reading,
      },
      findings.filter((finding) => chosen.has(finding.id)).map(({ assumes: _once, ...finding }) => finding),
      ctx.limits,
    )
  },
})

/** Maximum lengths of evidence lists, tried in this order until the answer fits. */
const LADDER = [2 * MOST_EVIDENCE, MOST_EVIDENCE, 5, 2, 1, 0] as const

type Shown<F extends CheckVerdict> = Omit<F, 'evidence'> & { evidence?: Record<string, unknown> }

/**
 * Builds an answer with as much evidence as fits. Counts cover all evidence; `evidence_limit` is the maximum length of
 * a list of evidence.
 */
function fitEvidence<E extends object, F extends CheckVerdict>(
  envelope: E,
  findings: readonly F[],
  limits: Limits,
): E & { findings: Shown<F>[]; evidence_limit: number } {
  const at = (limit: number) => ({
    ...envelope,
    findings: findings.map(({ evidence, ...finding }) => ({
      ...finding,
      ...(evidence !== undefined && { evidence: cutLists(evidence, limit) }),
    })),
    evidence_limit: limit,
  })
  const budget = answerBudget(limits)
  const [widest, ...narrower] = LADDER
  let answer = at(widest)
  for (const limit of narrower) {
    if (jsonBytes(answer) <= budget) break
    answer = at(limit)
  }
  return answer
}

const cutLists = (evidence: Evidence, limit: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(evidence).map(([name, entries]) => [
      name,
      Array.isArray(entries) ? entries.slice(0, limit) : entries,
    ]),
  )
