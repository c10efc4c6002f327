/** Which rules decided, and what they saw. */
import type { Twin, Why } from '../types'
import { fileLine } from '../words'

export function WhyLines({ why }: { why: Why }) {
  return (
    <div>
      {why.decided !== null && (
        <p>
          <span class={why.decided ? 'badge good' : 'badge bad'}>{why.decided ? 'allowed' : 'not allowed'}</span>
        </p>
      )}
      {why.lines.length > 0 && <pre>{why.lines.join('\n')}</pre>}
      <RuleList rules={why.rules ?? []} />
    </div>
  )
}

export function RuleList({ rules }: { rules: Twin['rules'] }) {
  return (
    <>
      {rules.map((rule, n) => (
        <div class="rule" key={n}>
          <strong>{rule.title}</strong>
          {rule.lines.length > 0 && <pre>{rule.lines.join('\n')}</pre>}
          {fileLine(rule) && <span class="where">{fileLine(rule)}</span>}
        </div>
      ))}
    </>
  )
}
