import { escapeText } from '../domain/text/escape-text.js'

export interface PromptArgument {
  name: string
  description: string
  required?: boolean
  /** The source of completions: a label key whose values are suggested, or a fixed list of values. */
  completes?: { labels: 'app' | 'env' } | { values: readonly string[] }
}

/** A prompt whose text is in `prompts/<name>.md`. */
export interface Prompt {
  name: string
  title: string
  description: string
  arguments: readonly PromptArgument[]
  /**
   * Returns the values for the placeholders `{{@name}}` in the text: the given arguments in quotation marks, and values
   * derived from the arguments.
   */
  valuesOf(given: Readonly<Record<string, string>>): Record<string, string>
}

/**
 * Puts a value in quotation marks, so that its beginning and end are visible. Hidden characters in it are made visible,
 * too (D27).
 */
const quoted = (text: string) => JSON.stringify(escapeText(text))

const APPLICATION: readonly PromptArgument[] = [
  { name: 'application_name', description: 'Value of the app label', required: true, completes: { labels: 'app' } },
  {
    name: 'application_environment',
    description: 'Value of the env label',
    required: true,
    completes: { labels: 'env' },
  },
]

const FRAMEWORKS = ['pci-dss', 'dora', 'nist', 'cis', 'iso-27001', 'swift-csp', 'hipaa', 'general'] as const

const valuesOfApplication = ({ application_name: app = '', application_environment: env = '' }) => ({
  application_name: quoted(app),
  application_environment: quoted(env),
  outbound_ruleset: quoted(`${app}-outbound`),
  isolation_ruleset: quoted(`EMERGENCY-ISOLATE-${app}-${env}`),
})

const aboutApplication = (name: string, title: string, description: string): Prompt => ({
  name,
  title,
  description,
  arguments: APPLICATION,
  valuesOf: valuesOfApplication,
})

/** All prompts, in the order in which they are listed. */
export const PROMPTS: readonly Prompt[] = [
  aboutApplication(
    'ringfence-application',
    'Ringfence an application',
    'Plan the ringfence of an application from its traffic, show who would be cut, write the draft once you agree. Stops before provisioning.',
  ),
  aboutApplication(
    'analyze-application-traffic',
    'Analyse the traffic of an application',
    'Who talks to an application and whom it talks to, by application, port and process; infrastructure apart, internet exposure, gaps. Only reads.',
  ),
  aboutApplication(
    'emergency-isolate-application',
    'Isolate an application in an emergency',
    'Cut an application off with an override deny. Shows the exact change and provisions it only after a person has said yes to it.',
  ),
  aboutApplication(
    'onboard-application',
    'Onboard an application',
    'From labels over readiness to a plan for enforcement, with dry runs. Stops before provisioning.',
  ),
  aboutApplication(
    'explain-blocked-traffic',
    'Explain blocked traffic',
    'What is blocked or would be for an application, why, and the narrowest change that would help. Only reads.',
  ),
  {
    name: 'review-before-provisioning',
    title: 'Review before provisioning',
    description:
      'Every pending change with its author, effect and risks, who would lose traffic, and a verdict. Only reads.',
    arguments: [],
    valuesOf: () => ({}),
  },
  {
    name: 'morning-report',
    title: 'Morning report',
    description:
      'Blocked since yesterday against last week, agents offline, errors, what is pending, what is new, and what is not known. Only reads.',
    arguments: [],
    valuesOf: () => ({}),
  },
  {
    name: 'quarterly-compliance-review',
    title: 'Quarterly compliance review',
    description: 'Checks of a framework over 90 days with evidence, gaps and what was not assessed. Only reads.',
    arguments: [
      { name: 'framework', description: FRAMEWORKS.join(', '), required: true, completes: { values: FRAMEWORKS } },
      ...APPLICATION.map((argument) => ({ ...argument, required: false })),
    ],
    valuesOf({ framework = '', application_name: app, application_environment: env }) {
      const parts = [app === undefined ? '' : `app ${quoted(app)}`, env === undefined ? '' : `env ${quoted(env)}`]
      const subject = parts.filter((part) => part !== '').join(', ')
      return { framework: `\`${framework}\``, subject: subject === '' ? 'everything' : subject }
    },
  },
]

/** Returns the path of a prompt's Markdown file, relative to the folder `knowledge`. */
export const fileOf = ({ name }: Pick<Prompt, 'name'>): string => `prompts/${name}.md`
