//! From pending recipes to stored ones: waiting for places, and cutting long recipes into pages.
//!
//! Enter: a [`PendingRecipe`] whose chunks were handed to the writer. Leaves: a [`Recipe`], with
//! pages stored as metadata (docs/format/v1.md, §8). A recipe is settled when all its chunks are
//! decided and placed; what it waits for here is brought about first.

use std::sync::{Arc, PoisonError};

use super::{WriteError, Writer};
use crate::container::ContainerKind;
use crate::pipeline::budget::{Stopped, lock};
use crate::pipeline::pending::PendingRecipe;
use crate::pipeline::stages::Stage;
use crate::recipe::{ContainerTable, RECIPE_LEVEL_MAX, RUNS_PER_PAGE_MAX, Recipe, RecipePage, Run};

impl Writer {
    /// Do all chunks of this recipe have their place by now?
    pub fn is_settled(&mut self, recipe: &mut PendingRecipe) -> bool {
        recipe.settle(&lock(&self.placements.state))
    }

    /// Turns a pending recipe into one that can be stored, waiting until all its chunks have a
    /// place. Long recipes are paged.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn settle(&mut self, mut recipe: PendingRecipe) -> Result<Recipe, WriteError> {
        self.wait_for_places(&mut recipe)?;
        self.page_out(&mut recipe)?;
        let (mut pages, runs) = recipe.into_placed();
        if pages.is_empty() {
            return Ok(Recipe::Runs(runs));
        }
        if !runs.is_empty() {
            pages.push(self.push_runs_page(&runs)?);
        }
        let mut level = 1;
        while pages.len() > RUNS_PER_PAGE_MAX {
            level += 1;
            if level > RECIPE_LEVEL_MAX {
                return Err(WriteError::RecipeTooLong);
            }
            let mut above = Vec::new();
            for below in pages.chunks(RUNS_PER_PAGE_MAX) {
                let recipe = Recipe::Paged {
                    level: level - 1,
                    pages: below.to_vec(),
                };
                above.push(self.push_recipe_page(&recipe)?);
            }
            pages = above;
        }
        Ok(Recipe::Paged { level, pages })
    }

    fn wait_for_places(&mut self, recipe: &mut PendingRecipe) -> Result<(), WriteError> {
        if self.is_settled(recipe) {
            return Ok(());
        }
        if !recipe.take_decisions() {
            self.decide_waiting()?;
            recipe.take_decisions();
        }
        let first_in_group = self.next_sequence - self.group_chunks.len() as u64;
        if recipe.needs(ContainerKind::Data) > first_in_group {
            self.close_group_of_whole()?;
        }
        let needed = recipe.needs(ContainerKind::Deltas);
        if let Some(deltas) = &mut self.deltas
            && !deltas.is_closed(needed)
        {
            deltas.close().map_err(|Stopped| self.failure.take())?;
        }
        let placements = Arc::clone(&self.placements);
        let meter = self.chunking.stages.meter(Stage::Index);
        let mut state = lock(&placements.state);
        loop {
            if recipe.settle(&state) {
                return Ok(());
            }
            if state.ended {
                return Err(self.failure.take());
            }
            let wait = || placements.changed.wait(state);
            state = meter.blocked(wait).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves the settled front of a long recipe into pages, so that memory stays bounded. Pages are
    /// stored in the order in which they come: call it only when those of all that comes before in
    /// the snapshot have come, or where pages lie depends on time.
    ///
    /// # Errors
    /// When the store fails.
    pub fn page_out(&mut self, recipe: &mut PendingRecipe) -> Result<(), WriteError> {
        self.is_settled(recipe);
        while let Some(runs) = recipe.take_page(RUNS_PER_PAGE_MAX) {
            let page = self.push_runs_page(&runs)?;
            recipe.pages.push(page);
        }
        Ok(())
    }

    fn push_runs_page(&mut self, runs: &[Run]) -> Result<RecipePage, WriteError> {
        self.push_recipe_page(&Recipe::Runs(runs.to_vec()))
    }

    fn push_recipe_page(&mut self, recipe: &Recipe) -> Result<RecipePage, WriteError> {
        let mut table = ContainerTable::default();
        let mut body = Vec::new();
        recipe.encode(&mut table, &mut body);
        let mut page = Vec::with_capacity(body.len() + 18 * table.containers().len());
        table.encode(&mut page);
        page.extend_from_slice(&body);
        Ok(RecipePage {
            stream_bytes: recipe.stream_bytes(),
            page: vec![self.push_page(&page)?],
        })
    }
}
