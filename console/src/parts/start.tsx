/** A first visit without data: declare, create, ask. */
import { to } from '../router'
import { shared, slug } from '../shell'
import { useStore } from '../store'

export function Start() {
  const { model } = useStore(shared)
  const first = model?.resources.find((resource) => resource.verbs.create)
  return (
    <div class="empty">
      <h2>Three steps to a first answer</h2>
      <ol class="steps">
        <li>
          <span class="number">1</span>
          <h2>Declare</h2>
          {model?.resources.length ? (
            <p>
              Done: the model has {model.resources.length} resources. <a href={to('model')}>See them</a>, and change the model file at any time; <code>diptych dev</code> reloads it.
            </p>
          ) : (
            <p>
              You see no resource. Either the model has none yet: write a class for each kind of row, and <code>diptych dev</code> reloads it when you save. Or its rules show you nothing: view as
              someone else, at the left.
            </p>
          )}
        </li>
        <li>
          <span class="number">2</span>
          <h2>Create</h2>
          {first ? (
            <p>
              <a href={to(`data/${slug(first)}?new=1`)}>Create the first {first.one}</a>, or import a CSV file on its page.
            </p>
          ) : (
            <p>Your role may not create rows. Look as another role (at the left), or grant it in the model.</p>
          )}
        </li>
        <li>
          <span class="number">3</span>
          <h2>Ask</h2>
          <p>
            <a href={to('request')}>Ask in GraphQL or in REST</a>: write one, and the other follows.
          </p>
        </li>
      </ol>
    </div>
  )
}
