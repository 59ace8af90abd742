"""A slice of the suites for turns, conversations and pull requests, with the store on PostgreSQL. CONTRIBUTING says how
to run the whole there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.pulls import test_changes, test_discussions, test_forks_approved
from tests.talk import test_conversation, test_plans, test_steering
from tests.turns import test_spine
from tests.world import World
from tests.world.postgres import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
async def world(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[World]:
    async with World.running(tmp_path, FORGEHAND_DATABASE_URL=postgres.fresh().reveal()) as running:
        yield running


test_the_next_comment_goes_on = test_spine.test_the_next_comment_goes_on_with_the_same_session_branch_and_pull_request
test_two_commands_at_once = test_spine.test_two_commands_at_once_on_a_thread_run_one_after_the_other
test_a_session_goes_on_with_a_summary = test_conversation.test_what_cannot_be_resumed_goes_on_with_a_summary_and_says_so
test_a_yes_after_a_restart = test_plans.test_a_yes_counts_also_after_a_restart_and_an_edited_plan_is_what_is_done
test_words_stay_in_order = test_steering.test_two_people_at_once_stay_in_order
test_a_review_is_answered = test_discussions.test_all_comments_of_a_review_are_answered_and_what_is_settled_resolved
test_a_lost_answer = test_changes.test_a_lost_answer_is_recognised_also_under_what_others_pushed_since
test_a_push_to_a_fork = test_forks_approved.test_a_push_to_the_fork_between_the_yes_and_its_turn_is_seen
